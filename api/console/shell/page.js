// One visit of a page: what the page may do to the window while it is shown.
import { replace } from './dom.js';
import { complain, loading } from './pieces.js';

const view = document.getElementById('view');
const question = document.getElementById('question');

export class Page {
  #left = new AbortController();
  #wait = null;  // until the user sees that the page loads

  constructor(name, path, query, project) {
    this.name = name;
    this.path = path;
    this.query = query;  // the filters in the address
    this.project = project;
  }

  // Aborted when the user leaves the page.
  get signal() { return this.#left.signal; }

  // Shows the nodes in place of the earlier ones, unless the user has left.
  show(...nodes) {
    clearTimeout(this.#wait);
    if (this.signal.aborted) return;
    replace(view, nodes);
    view.setAttribute('aria-busy', 'false');
  }

  // Runs `task` at once, and again `ms` after its end. Rests while the window is hidden or a
  // question is open.
  async every(ms, task) {
    await task();
    const again = async () => {
      if (this.signal.aborted) return;
      if (!document.hidden && !question.open) {
        try {
          await task();
          view.querySelector('.alert.stale')?.remove();
        } catch (error) {
          if (this.signal.aborted) return;
          complain(view, error);
          view.querySelector('.alert').classList.add('stale');
        }
      }
      setTimeout(again, ms);
    };
    setTimeout(again, ms);
  }

  // Puts the filters into the address, which shows the page anew.
  filter(values) {
    const query = new URLSearchParams(values);
    location.hash = [this.name, ...this.path.map(encodeURIComponent)].join('/') + (query.size ? '?' + query : '');
  }

  // Shows the page once more.
  again() { dispatchEvent(new Event('again')); }

  async run(module) {
    view.setAttribute('aria-busy', 'true');
    this.#wait = setTimeout(() => this.show(loading()), 150);
    try {
      await module.default(this);
    } catch (error) {
      if (this.signal.aborted) return;
      this.show();
      complain(view, error, () => this.again());
    }
  }

  leave() {
    clearTimeout(this.#wait);
    this.#left.abort();
  }
}
