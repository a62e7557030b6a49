// The Miniflare plugin: env.AI is workerd's own binding, and what is behind it is the emulator.
//
// Miniflare 4 hands a plugin the array of its own bindings. Miniflare 5 hands it the whole Worker, whose
// `config.env` has all of them by name.

import { createRequire } from "node:module";

import { rootFrom } from "./url.js";
import { misfit } from "./version.js";

const NAME = "workersai-emulator";

/** The plugin under its name, as Miniflare looks for it. Options of a binding: `url`, `account`. */
export const plugins = {
  [NAME]: {
    // Where Miniflare asks for a schema; ours is read by `aimOf`, which has words of its own.
    options: { parse: (value) => value, safeParse: (value) => ({ success: true, data: value }) },

    async getBindings(worker) {
      return bindingsOf(worker).map(([name, aim]) => ({
        name,
        wrapped: {
          moduleName: "cloudflare-internal:ai-api",
          innerBindings: [{ name: "fetcher", service: { name: serviceName(aim) } }],
        },
      }));
    },

    getNodeBindings(worker) {
      const bindings = bindingsOf(worker);
      if (bindings.length === 0) return {};
      const ProxyNodeBinding = bindingOfCaller(new Error().stack);
      return Object.fromEntries(bindings.map(([name]) => [name, new ProxyNodeBinding()]));
    },

    async getServices({ options, log }) {
      const aims = bindingsOf(options).map(([, aim]) => aim);
      for (const url of new Set(aims.map((aim) => aim.url))) {
        const fault = await misfit(url);
        if (fault !== null) log.warn(fault);
      }
      return aims.map((aim) => ({ name: serviceName(aim), external: external(aim) }));
    },
  },
};

function bindingsOf(worker) {
  const bindings = Array.isArray(worker)
    ? worker.map((binding) => [binding.name, binding.options])
    : Object.entries(worker?.config?.env ?? {})
        .filter(([, binding]) => binding.dev?.plugin?.name === NAME)
        .map(([name, binding]) => [name, binding.dev.options]);
  return bindings.map(([name, options]) => [name, aimOf(options ?? {})]);
}

function aimOf({ url, account }) {
  if (account !== undefined && !/^[0-9a-f]{32}$/i.test(account)) {
    throw new TypeError(`workersai-emulator: account ${account} is not 32 hex digits`);
  }
  return { url: rootFrom(url), account };
}

function serviceName({ url, account }) {
  return [NAME, url, account].filter(Boolean).join(" ");
}

function external({ url, account }) {
  const { protocol, hostname, port } = new URL(url);
  const http = account ? { injectRequestHeaders: [{ name: "x-emulator-account", value: account }] } : {};
  if (protocol === "http:") return { address: `${hostname}:${port || 80}`, http };
  const tlsOptions = { trustBrowserCas: true };
  return { address: `${hostname}:${port || 443}`, https: { options: http, tlsOptions, certificateHost: hostname } };
}

/** The class that marks a proxied binding, of the Miniflare in whose call we are: there may be several here. */
function bindingOfCaller(stack) {
  const loaded = Object.values(createRequire(import.meta.url).cache).filter(
    (module) => /[\\/]miniflare[\\/]dist[\\/]/.test(module.filename ?? "") && module.exports?.ProxyNodeBinding,
  );
  const caller = loaded.find((module) => stack.includes(module.filename)) ?? loaded[0];
  if (caller === undefined) throw new Error("workersai-emulator: the Miniflare that loaded the plugin is not found");
  return caller.exports.ProxyNodeBinding;
}
