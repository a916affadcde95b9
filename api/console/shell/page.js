// One visit of a page: what the page may do to the window while it is shown.
import { hear, Refused } from './ask.js';
import { el, replace } from './dom.js';
import { button, complain, duration, loading, reason } from './pieces.js';

const view = document.getElementById('view');
const question = document.getElementById('question');

// Trying again does not help against these.
const final = [400, 401, 403, 404];
const longestWait = 30000;

export class Page {
  #left = new AbortController();
  #wait = null;  // until the user sees that the page loads
  #notices = el('div', { role: 'status' });  // why the page is not live

  project = '';  // its id; set before the page's module runs

  constructor(name, path, query) {
    this.name = name;
    this.path = path;
    this.query = query;  // the filters in the address
  }

  // Aborted when the user leaves the page.
  get signal() { return this.#left.signal; }

  // Shows the nodes in place of the earlier ones, unless the user has left.
  show(...nodes) {
    clearTimeout(this.#wait);
    if (this.signal.aborted) return;
    replace(view, [this.#notices, nodes]);
    view.setAttribute('aria-busy', 'false');
  }

  // Runs `task` at once, and again `ms` after its end, until it returns false. Waits longer after
  // failures. Rests while the window is hidden or a question is open.
  async every(ms, task) {
    if (await task() === false) return;
    let wait = ms;
    this.#repeat(async () => {
      await this.#pause(wait);
      wait = 0;  // a failure has its own wait
      const goesOn = await task();
      wait = ms;
      return goesOn;
    });
  }

  // Runs `task` at once, and again after each server-sent event, until it returns false. A run
  // never overlaps another one, so no older answer replaces a newer one.
  async follow(path, parameters, task) {
    // The event comes before the first run, so a change during the run is not missed. A refusal is
    // told by the next try.
    let known = await hear(path, parameters, null, this.signal).catch(() => null);
    if (await task() === false) return;
    this.#repeat(async () => {
      await this.#attention();
      const behind = known;
      known = null;  // after a failure the next event comes at once
      const event = await hear(path, parameters, behind, this.signal);
      const goesOn = event === null || await task();
      known = event ?? behind;
      return goesOn;
    });
  }

  // Repeats the step until it returns false. Tells of failures, and tries again.
  async #repeat(step) {
    let failures = 0;
    const notice = el('div', { className: 'alert live' });
    while (!this.signal.aborted) {
      try {
        if (await step() === false) return;
        failures = 0;
        notice.remove();
      } catch (error) {
        if (this.signal.aborted) return;
        if (!(error instanceof Refused)) console.error(error);
        this.#notices.append(notice);
        await this.#refused(notice, error, Math.min(longestWait, 1000 * 2 ** failures++));
      }
    }
  }

  // Says why the page is not live, until the next try.
  async #refused(notice, error, wait) {
    const ends = error instanceof Refused && final.includes(error.status);
    let tryAgain = null;
    const asked = new Promise((resolve) => { tryAgain = resolve; });
    const text = ends ? 'Not live.' : `Not live; trying again in ${duration(wait / 1000)}.`;
    notice.replaceChildren(el('p', {}, el('strong', {}, text), ' ', reason(error)), button('Try again', tryAgain));
    await Promise.race([asked, this.#pause(ends ? null : wait).catch(() => null)]);
  }

  // `ms` null: until the user leaves.
  async #pause(ms) {
    await new Promise((resolve) => {
      const end = () => {
        this.signal.removeEventListener('abort', end);
        resolve();
      };
      if (ms !== null) setTimeout(end, ms);
      this.signal.addEventListener('abort', end);
    });
    await this.#attention();
  }

  // Waits until the user sees the page and no question is open.
  async #attention() {
    while (!this.signal.aborted && (document.hidden || question.open)) {
      await new Promise((resolve) => {
        const options = { once: true, signal: this.signal };
        document.addEventListener('visibilitychange', resolve, options);
        question.addEventListener('close', resolve, options);
        this.signal.addEventListener('abort', resolve, { once: true });
      });
    }
    this.signal.throwIfAborted();
  }

  // Puts the filters into the address, which shows the page anew.
  filter(values) {
    const query = new URLSearchParams(values);
    location.hash = [this.name, ...this.path.map(encodeURIComponent)].join('/') + (query.size ? '?' + query : '');
  }

  // Shows the page once more.
  again() { dispatchEvent(new Event('again')); }

  // `load` gets the page's module.
  async run(load) {
    view.setAttribute('aria-busy', 'true');
    this.#wait = setTimeout(() => this.show(loading()), 150);
    try {
      const module = await load();
      this.signal.throwIfAborted();
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
