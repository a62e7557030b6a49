// The control plane of a running emulator: time, what goes wrong, what models answer, and the batches.

import { rootFrom, rootOf } from "./url.js";
import { misfit } from "./version.js";

/** The control plane's refusal, in its own words; `status` is the reply's. */
export class ControlError extends Error {
  name = "ControlError";

  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

/**
 * The control of one account of the emulator at `url`, or with no `account` of its defaults and all accounts.
 *
 * `token` is the server's --control-token, where it has one. `url` is where WORKERS_AI_EMULATOR_URL says, unless given.
 */
export function connect(url, { account, token } = {}) {
  const root = url === undefined ? rootFrom() : rootOf(url);
  const meant = account === undefined ? {} : { account_id: account };

  async function ask(method, path, said = {}) {
    const spoken = { ...said, ...meant };
    const inQuery = method === "GET" ? `?${new URLSearchParams(spoken)}` : "";
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const body = method === "GET" ? undefined : JSON.stringify(spoken);
    const reply = await fetch(`${root}/__emulator__/${path}${inQuery}`, { method, headers, body });
    const text = await reply.text();
    if (!reply.ok) throw new ControlError(lineOf(text) ?? `${root} answers ${reply.status}`, reply.status);
    return text ? JSON.parse(text) : undefined;
  }

  const move = async (said) => new Date((await ask("POST", "clock", said)).now);
  const batch = (id) => `batches/${encodeURIComponent(id)}`;
  const act = (id, said) => ask("POST", batch(id), said);
  const rules = {
    add: (rule) => ask("POST", "rules", rule),
    list: async () => (await ask("GET", "rules")).rules,
    delete: (id) => ask("DELETE", `rules/${encodeURIComponent(id)}`),
    clear: () => ask("DELETE", "rules"),
  };

  return {
    url: root,
    ask,
    rules,
    clock: {
      now: async () => new Date((await ask("GET", "clock")).now),
      freeze: () => move({ freeze: true }),
      unfreeze: () => move({ freeze: false }),
      advance: (duration) => move({ advance: duration }),
      scale: (factor) => move({ scale: factor }),
      jump: (on = true) => move({ jump: on }),
      set: (moment) => move({ now: moment.toISOString() }),
    },
    batches: {
      list: async (wanted = {}) => (await ask("GET", "batches", wanted)).batches,
      get: (id) => ask("GET", batch(id)),
      goOn: (id) => act(id, { action: "go-on" }),
      hold: (id) => act(id, { action: "hold" }),
      fail: (id, code = 5001) => act(id, { action: "fail", code }),
      lose: (id) => act(id, { action: "lose" }),
    },
    outputs: {
      /** Let a model answer this: a run, and each item of a batch, of this `model` and with this `text` in it. */
      add: (output, { text, model, times } = {}) =>
        rules.add({ match: { text, model }, effect: { output }, times }),
    },
    /** Refuse the next `times` requests of this kind with a code, or a row's id, of the error catalogue. */
    fail: (operation, error, { times = 1, retryAfter } = {}) =>
      rules.add({ match: { operation }, effect: { error, retry_after: retryAfter }, times }),
    settings: (changes = {}) => ask("PATCH", "settings", changes),
    reset: () => ask("POST", "reset"),
    /** Throws an Error where the server's version and this package's do not fit, or no server answers. */
    async check() {
      const fault = await misfit(root);
      if (fault !== null) throw new Error(fault);
    },
  };
}

function lineOf(text) {
  try {
    return JSON.parse(text).error;
  } catch {
    return undefined;
  }
}
