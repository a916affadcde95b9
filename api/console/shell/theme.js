// Light, dark, or as the system has it.

const button = document.getElementById('theme');
const names = ['system', 'light', 'dark'];
const signs = { system: '◐', light: '☀', dark: '☾' };

// A browser may refuse the storage; then the choice lasts as long as the page.
function kept() {
  try {
    return localStorage.getItem('conversed.theme');
  } catch {
    return null;
  }
}

function keep(name) {
  try {
    localStorage.setItem('conversed.theme', name);
  } catch {
    return;
  }
}

function take(name) {
  document.documentElement.dataset.theme = name;
  button.textContent = signs[name];
  button.setAttribute('aria-label', `Colors: ${name}. Change`);
  button.title = `Colors: ${name}`;
  dispatchEvent(new Event('themechange'));
}

export function startTheme() {
  take(names.includes(kept()) ? kept() : 'system');
  button.addEventListener('click', () => {
    const next = names[(names.indexOf(document.documentElement.dataset.theme) + 1) % names.length];
    keep(next);
    take(next);
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => dispatchEvent(new Event('themechange')));
}
