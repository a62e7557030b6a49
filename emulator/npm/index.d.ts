export { createAi } from "./ai.js";
export type {
  ConversionResponse,
  EmulatedAi,
  MarkdownDocument,
  MarkdownService,
  Model,
  ModelsParams,
  RunOptions,
} from "./ai.js";

/** This package's version, which is also the Python package's. */
export const VERSION: string;

/** The options of a binding of ours: where the server is, and the account that is meant (32 hex digits). */
export interface BindingOptions {
  url?: string;
  account?: string;
}

/** For Miniflare, which looks for its plugin here. */
export const plugins: Record<"workersai-emulator", object>;

/** Seconds, or a text such as "500ms", "30s", "5m", "2h". */
export type Duration = number | string;
export type Operation = "submit" | "poll" | "run";
export type State = "queued" | "running" | "done" | "failed" | "lost";

/** A rule as the control plane spells it: what it matches, and what it makes happen. */
export interface Rule {
  match?: Record<string, unknown>;
  effect: Record<string, unknown>;
  times?: number;
  probability?: number;
}

export interface RuleView extends Rule {
  id: string;
  fired: number;
}

/** A queued batch as it was when it was looked at; `request` is its body, which lists leave out. */
export interface BatchView {
  request_id: string;
  account_id: string;
  model: string;
  state: State;
  script: string;
  items: number;
  bytes: number;
  polls: number;
  submitted_at: string;
  request?: unknown;
}

/** What makes things happen at an emulator. Where the control plane refuses, a ControlError has its words. */
export interface Control {
  readonly url: string;
  /** Time, as batches go by it. Each change returns the time after it. */
  readonly clock: {
    now(): Promise<Date>;
    freeze(): Promise<Date>;
    unfreeze(): Promise<Date>;
    advance(duration: Duration): Promise<Date>;
    scale(factor: number): Promise<Date>;
    jump(on?: boolean): Promise<Date>;
    set(moment: Date): Promise<Date>;
  };
  readonly rules: {
    add(rule: Rule): Promise<RuleView>;
    list(): Promise<RuleView[]>;
    delete(id: string): Promise<void>;
    clear(): Promise<void>;
  };
  readonly outputs: {
    /** Let a model answer this: a run, and each item of a batch, of this `model` and with this `text` in it. */
    add(output: unknown, wanted?: { text?: string; model?: string; times?: number }): Promise<RuleView>;
  };
  readonly batches: {
    list(wanted?: { state?: State; model?: string }): Promise<BatchView[]>;
    get(id: string): Promise<BatchView>;
    goOn(id: string): Promise<BatchView>;
    hold(id: string): Promise<BatchView>;
    fail(id: string, code?: number | string): Promise<BatchView>;
    lose(id: string): Promise<BatchView>;
  };
  /** Refuse the next `times` requests of this kind with a code, or a row's id, of the error catalogue. */
  fail(
    operation: Operation,
    error: number | string,
    options?: { times?: number; retryAfter?: Duration },
  ): Promise<RuleView>;
  /** Change settings, such as `{ script: "instant" }`; returns all. */
  settings(changes?: Record<string, unknown>): Promise<Record<string, unknown>>;
  /** Forget batches, rules, settings, clock and journal. */
  reset(): Promise<void>;
  /** One request of the control plane, for what has no method here: `ask("GET", "usage")`. */
  ask(method: string, path: string, said?: Record<string, unknown>): Promise<any>;
  /** Throws an Error where no server answers, or its version and this package's do not fit. */
  check(): Promise<void>;
}

export class ControlError extends Error {
  readonly status: number;
}

/**
 * The control of one account of a running emulator, or with no `account` of its defaults and all accounts.
 *
 * Without `url` it is the one that WORKERS_AI_EMULATOR_URL names. `token` is the server's --control-token.
 */
export function connect(url?: string | URL, options?: { account?: string; token?: string }): Control;

export interface StartOptions {
  /** Options of `workersai-emulator serve`, such as ["--script", "instant"]. */
  args?: string[];
  /** What runs it, in place of the command on PATH, uvx and pipx. */
  command?: string[];
  env?: Record<string, string | undefined>;
}

/** Start an emulator on a free port, to which this process's WORKERS_AI_EMULATOR_URL points until `stop()`. */
export function start(options?: StartOptions): Promise<Control & { stop(): Promise<void> }>;
