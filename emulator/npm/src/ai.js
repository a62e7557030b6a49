// env.AI for code that runs without a binding: tests in plain Node, or a Worker whose configuration has none.
//
// It speaks the binding's own wire and answers as workerd's binding does: what is JSON comes parsed, everything else
// as a stream, and what the service refuses is thrown with the service's code in the message.

import { rootOf } from "./url.js";

const NOT_SENT = new Set(["prefix", "extraHeaders", "sessionOptions", "signal"]);
const ABSENT = ["aiSearch", "autorag", "websearch"];

/**
 * An env.AI that asks the server at `url`.
 *
 * `account` is the account that is meant (32 hex digits), `fetch` another way to it than the global one.
 */
export function createAi(url, { account, fetch = globalThis.fetch } = {}) {
  const root = rootOf(url);
  const own = account === undefined ? {} : { "x-emulator-account": account };
  const ask = (path, { headers, ...rest } = {}) =>
    fetch(`${root}${path}`, { ...rest, headers: { ...own, ...headers }, redirect: "manual" });
  return new EmulatedAi(ask);
}

/** What the service refused. Its `name` is the service's own where it told one, such as "AiError". */
class InferenceUpstreamError extends Error {
  constructor(message, name = "InferenceUpstreamError") {
    super(message);
    this.name = name;
  }
}

/** What the binding itself refuses. */
class AiInternalError extends Error {
  name = "AiInternalError";
}

class EmulatedAi {
  #ask;

  lastRequestId = null;
  aiGatewayLogId = null;
  lastRequestHttpStatusCode = null;
  lastRequestInternalStatusCode = null;

  constructor(ask) {
    this.#ask = ask;
    for (const name of ABSENT) {
      this[name] = () => {
        throw new AiInternalError(`workersai-emulator: createAi has no ${name}()`);
      };
    }
  }

  async run(model, inputs, options = {}) {
    if (options.websocket) throw new AiInternalError("workersai-emulator: createAi has no WebSocket");
    this.lastRequestId = "";
    const reply = await this.#send(model, inputs, options);
    this.lastRequestId = reply.headers.get("cf-ai-req-id");
    this.aiGatewayLogId = reply.headers.get("cf-aig-log-id");
    this.lastRequestHttpStatusCode = reply.status;
    if (options.returnRawResponse) return reply;
    if (!reply.ok || reply.body === null) throw this.#thrown(await reply.text());
    return reply.headers.get("content-type") === "application/json" ? reply.json() : reply.body;
  }

  async models(params = {}) {
    const query = new URLSearchParams(Object.entries(params).map(([name, value]) => [name, String(value)]));
    return resultOf(await this.#ask(`/ai-api/models/search${query.size ? `?${query}` : ""}`));
  }

  toMarkdown(files, options) {
    const service = {
      supported: async () => resultOf(await this.#ask("/to-everything/markdown/supported")),
      transform: async (documents, wishes) => {
        const list = Array.isArray(documents) ? documents : [documents];
        const reply = await this.#ask("/to-everything/markdown/transformer", {
          method: "POST",
          headers: { ...wishes?.extraHeaders, "content-type": "application/json" },
          body: JSON.stringify({ files: await Promise.all(list.map(inBase64)), options: wishes }),
        });
        const converted = await resultOf(reply);
        return Array.isArray(documents) ? converted : converted[0];
      },
    };
    return files === undefined ? service : service.transform(files, options);
  }

  gateway(id) {
    const log = (name, init) => this.#ask(`/ai-gateway/gateways/${id}/logs/${name}`, init);
    return {
      getLog: async (name) => {
        const found = await resultOf(await log(name));
        return { ...found, created_at: new Date(found.created_at) };
      },
      patchLog: async (name, data) => {
        const headers = { "content-type": "application/json" };
        await resultOf(await log(name, { method: "PATCH", headers, body: JSON.stringify(data) }));
      },
    };
  }

  #send(model, inputs, options) {
    const { prefix, extraHeaders, sessionOptions, signal } = options;
    const sent = Object.fromEntries(Object.entries(options).filter(([name]) => !NOT_SENT.has(name)));
    const headers = {
      ...sessionOptions?.extraHeaders,
      ...extraHeaders,
      "cf-consn-sdk-version": "2.0.0",
      "cf-consn-model-id": `${prefix ? `${prefix}:` : ""}${model}`,
    };
    const streamed = Object.keys(inputs).filter((name) => isStream(inputs[name]) || isStream(inputs[name]?.body));
    if (streamed.length === 0) {
      const path = sent.gateway?.id ? "/ai-gateway/run" : "/run";
      headers["content-type"] = "application/json";
      const body = JSON.stringify({ inputs, options: sent });
      return this.#ask(`${path}?version=3`, { method: "POST", signal, headers, body });
    }
    return this.#sendStream(streamed, inputs, sent, { signal, headers });
  }

  /** The stream is the body; what goes with it is in the query. */
  async #sendStream([name, ...more], inputs, sent, { signal, headers }) {
    if (more.length > 0) {
      const keys = [name, ...more].join(", ");
      throw new AiInternalError(`Multiple ReadableStreams are not supported. Found streams in keys: [${keys}]`);
    }
    if (sent.gateway?.id) throw new AiInternalError("AI Gateway does not support ReadableStreams yet.");
    const { [name]: stream, ...others } = inputs;
    if (!stream.contentType) throw new AiInternalError("Content-Type is required with ReadableStream inputs");
    const query = new URLSearchParams({ ...sent, version: "3", userInputs: JSON.stringify(others) });
    headers["content-type"] = stream.contentType;
    return this.#ask(`/run?${query}`, { method: "POST", signal, headers, body: stream.body, duplex: "half" });
  }

  #thrown(text) {
    const told = parsed(text);
    if (told?.internalCode) {
      this.lastRequestInternalStatusCode = told.internalCode;
      return new InferenceUpstreamError(`${told.internalCode}: ${told.description}`, told.name);
    }
    const first = told?.errors?.[0];
    return new InferenceUpstreamError(first ? `${first.code}: ${first.message}` : text);
  }
}

async function resultOf(reply) {
  const told = parsed(await reply.text());
  if (!reply.ok) throw new AiInternalError(told?.errors?.[0]?.message || "Internal Error");
  return told?.result;
}

async function inBase64({ name, blob }) {
  const bytes = new Uint8Array(await blob.arrayBuffer());
  const text = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  return { name, mimeType: blob.type, data: btoa(text) };
}

function isStream(value) {
  return value instanceof ReadableStream || value instanceof FormData;
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
