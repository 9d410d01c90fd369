// Puts the views into the page and keeps them up to date: by watch where there is one, else by small messages while the page
// is looked at.
import { write } from './element.js';
import * as load from './load.js';
import { routeOf, tasksHash } from './routes.js';
import { call } from './rpc.js';
import { compareView } from './views/compare.js';
import { meshView } from './views/mesh.js';
import { sessionView } from './views/session.js';
import { taskView, withSession } from './views/task.js';
import { tasksView } from './views/tasks.js';

const LOOK_MS = 3_000;
/** A filter may look at many tasks that are over. */
const TASKS_LOOK_MS = 10_000;
/** Between two looks at why sessions of a page wait. */
const WAITING_MS = 5_000;
/** Points of a curve. */
const RATES = 200;

const place = document.querySelector('main');
const status = document.querySelector('#status');
/** What the reader did, beside the address. */
const ui = { actions: false, asked: undefined, picked: [] };
let nodeIds = [];
let harnesses = [];
/** Of the view that is shown. */
let shown = { stop: new AbortController(), draw: undefined };

const draw = (view) => write(document, place, view);

/** Shows where the address points, and stops what the view before it did. */
async function show() {
  shown.stop.abort();
  const stop = new AbortController();
  shown = { stop, draw: undefined };
  ui.asked = undefined;
  const route = routeOf(location.hash);
  for (const link of document.querySelectorAll('header a')) {
    const current = link.getAttribute('href') === `#/${route.view === 'mesh' ? '' : route.view}`;
    if (current) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  document.title = `${route.id ?? route.view} · polar`;
  try {
    await SHOWS[route.view](route, { signal: stop.signal });
  } catch (error) {
    tell(error, stop.signal);
  }
}

/** What went wrong, where it is not that the reader went on: beside what is shown, or in its place where nothing is. */
function tell(error, signal) {
  if (signal.aborted) return;
  const told = `${error.code ?? 'error'}: ${error.message}`;
  if (shown.draw === undefined) place.replaceChildren(told);
  else status.textContent = told;
}

const SHOWS = {
  async mesh(_, options) {
    let before;
    const rates = [];
    await repeat(LOOK_MS, options, async (look) => {
      const mesh = await load.loadMesh(nodeIds, look);
      const now = performance.now();
      if (before !== undefined) rates.push(load.rateOf(before.tasks, mesh.tasks, (now - before.now) / 1_000));
      if (rates.length > RATES) rates.shift();
      before = { tasks: mesh.tasks, now };
      drawn(look, () => meshView({ ...mesh, rates }, ui));
    });
  },

  async tasks({ filter, page }, options) {
    await repeat(TASKS_LOOK_MS, options, async (look) => {
      const found = await load.loadTasks(filter, page, look);
      harnesses = [...new Set([...harnesses, ...found.tasks.map(({ harness }) => harness ?? '')])]
        .filter((name) => name !== '')
        .sort();
      drawn(look, () => tasksView({ ...found, filter, page, picked: ui.picked, harnesses }));
    });
  },

  async task({ id, page }, options) {
    let given;
    const now = (changed) => {
      given = { ...given, ...changed, page };
      drawn(options, () => taskView(given, ui));
    };
    const waits = repeat(WAITING_MS, options, async (look) => {
      if (Object.keys(given?.waiting ?? {}).length > 0) now(await load.loadSessions(id, page, look));
    });
    // A watch that is cut is opened again. The page is read behind its beginning, so that no change is missed. What has ended
    // can be tried again.
    let over = false;
    await repeat(LOOK_MS, options, async (look) => {
      if (over && (await load.loadEnd(id, look)) === given.task.endTime) return;
      let begun = false;
      for await (const { session, task } of load.watchTask(id, look)) {
        if (!begun) now(await load.loadTask(id, page, look));
        else if (session !== undefined) {
          now({ task: { ...task, spec: given.task.spec }, sessions: withSession(given.sessions, session) });
        }
        begun = true;
      }
      now(await load.loadTask(id, page, look));
      over = true;
    });
    await waits;
  },

  async session({ id }, options) {
    let given = { calls: [], callsDone: false, summaries: [] };
    const now = (changed) => {
      given = { ...given, ...changed };
      drawn(options, () => sessionView(given, ui));
    };
    let built;
    /** When it ended, once all of that is shown. It can be tried again. */
    let end;
    await repeat(LOOK_MS, options, async (look) => {
      const { session, waiting } = await load.loadSession(id, look);
      if (end !== undefined && session.endTime === end) return;
      now({ session, waiting });
      // Each part is shown when it comes: none waits for another that is not told. False: it was not.
      const part = async (name, loading) => {
        try {
          now({ [name]: await loading, [`${name}Problem`]: undefined });
          return true;
        } catch (error) {
          if (!look.signal.aborted) now({ [`${name}Problem`]: error.message });
          return false;
        }
      };
      // What was said is read when the session is seen first, and once more when its trajectory is built.
      const isBuilt = session.stats !== undefined;
      const [, ...isWhole] = await Promise.all([
        part('output', load.loadOutput(session, look)),
        part('evaluation', load.loadEvaluation(session, look)),
        built === isBuilt || part('summaries', load.loadSummaries(id, look)),
        built === isBuilt || part('calls', load.loadCalls(id, look)),
      ]);
      if (isWhole.slice(1).every((one) => one)) {
        built = isBuilt;
        now({ callsDone: true });
      }
      end = isWhole.every((one) => one) ? session.endTime : undefined;
    });
  },

  async compare({ ids }, options) {
    const sides = await load.loadCompared(ids, options);
    drawn(options, () => compareView(sides));
  },
};

/** Draws a view now, and again when the reader does something. */
function drawn({ signal }, view) {
  if (signal.aborted) return;
  status.textContent = '';
  shown.draw = () => draw(view());
  schedule();
}

let scheduled = false;

/** Many changes of one moment are drawn once. */
function schedule() {
  if (scheduled) return;
  scheduled = true;
  requestAnimationFrame(() => {
    scheduled = false;
    shown.draw?.();
  });
}

/**
 * Does it now and each `ms`, while the page is looked at, until the signal. What is on its way ends when the reader looks
 * elsewhere, watches too: a browser has six connections to a place, for all of its tabs.
 */
async function repeat(ms, options, work) {
  while (!options.signal.aborted) {
    if (!document.hidden) {
      const away = new AbortController();
      const leave = () => document.hidden && away.abort();
      const signal = AbortSignal.any([options.signal, away.signal]);
      document.addEventListener('visibilitychange', leave);
      try {
        await work({ ...options, signal });
      } catch (error) {
        tell(error, signal);
      } finally {
        document.removeEventListener('visibilitychange', leave);
      }
    }
    await new Promise((resolve) => setTimeout(resolve, ms));
  }
}

const ROLLOUT = 'polar.scheduler.v1.RolloutService';
const CHANGES = {
  drain: (nodeId) => call(`${ROLLOUT}/DrainNode`, { nodeId }),
  undrain: (nodeId) => call(`${ROLLOUT}/DrainNode`, { nodeId, undo: true }),
  'cancel-task': (taskId) => call(`${ROLLOUT}/CancelTask`, { taskId }),
  'cancel-session': (sessionId) => call(`${ROLLOUT}/CancelSession`, { sessionId }),
};

async function act({ action, subject, sure }) {
  if (action === 'pick') {
    ui.picked = ui.picked.includes(subject)
      ? ui.picked.filter((id) => id !== subject)
      : [...ui.picked, subject].slice(-2);
    return schedule();
  }
  ui.asked = action === 'no' || sure !== undefined ? undefined : `${action} ${subject}`;
  schedule();
  if (sure === undefined || CHANGES[action] === undefined) return;
  try {
    await CHANGES[action](subject);
    await show();
  } catch (error) {
    status.textContent = `${error.code ?? 'error'}: ${error.message}`;
  }
}

addEventListener('hashchange', () => {
  // What was typed, picked and shown at the address before is not of this one.
  place.replaceChildren('Loading …');
  status.textContent = '';
  void show();
});
place.addEventListener('click', ({ target }) => {
  const button = target.closest('button[data-action]');
  if (button !== null) void act(button.dataset);
});
place.addEventListener('submit', (event) => {
  event.preventDefault();
  location.hash = tasksHash(Object.fromEntries(new FormData(event.target)));
});

const settings = await (await fetch('/settings.json')).json();
ui.actions = settings.actions;
nodeIds = settings.nodes;
await show();
