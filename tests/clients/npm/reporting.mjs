// What a client's program tells of what it got: one JSON object on stdout.

const env = process.env;

export const ACCOUNT = env.CLOUDFLARE_ACCOUNT_ID;
export const TOKEN = env.CLOUDFLARE_API_TOKEN;
export const BASE_URL = env.CLOUDFLARE_BASE_URL;
export const ROOT = env.WORKERS_AI_EMULATOR_URL;
export const EMBEDDING = env.CLIENT_EMBEDDING_MODEL;
export const TEXT = env.CLIENT_TEXT_MODEL;
export const TEXTS = JSON.parse(env.CLIENT_TEXTS);
export const PROMPT = env.CLIENT_PROMPT;
export const WEATHER = JSON.parse(env.CLIENT_TOOL);
export const QUESTION = env.CLIENT_QUESTION;

/** What OpenAI's clients take for the base URL of an account. */
export const openaiUrl = (account) => `${BASE_URL}/accounts/${account}/ai/v1`;

/** A fetch for clients that know no other host than the service's. */
export const emulatorFetch = (request, options) => {
  const url = new URL(request.url ?? request);
  const home = url.host === "api.cloudflare.com" ? `${ROOT}${url.pathname}${url.search}` : url;
  return realFetch(home, options);
};
const realFetch = globalThis.fetch;

/** What a Worker's binding is to a library: `run(model, inputs)` gives the result, or throws "code: message". */
export const restBinding = (account) => ({
  async run(model, inputs) {
    const reply = await realFetch(`${BASE_URL}/accounts/${account}/ai/run/${model}`, {
      method: "POST",
      headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" },
      body: JSON.stringify(inputs),
    });
    const said = await reply.json();
    if (!said.success) throw new Error(`${said.errors[0].code}: ${said.errors[0].message}`);
    return said.result;
  },
});

const told = {};

/** Tell what the client got; a part that fails is told as such, apart from the others. */
export async function tell(part, get) {
  try {
    told[part] = await get();
  } catch (fault) {
    told[part] = { fault: String(fault.stack ?? fault) };
  }
}

/** What came of a call: what it returned, or the exception's class and words. */
export async function raised(ask, describe = {}) {
  try {
    return { returned: (await ask()) ?? null };
  } catch (fault) {
    const met = { kind: fault.constructor.name, says: String(fault.message).slice(0, 2000) };
    for (const [name, read] of Object.entries(describe)) {
      try {
        met[name] = read(fault);
      } catch {
        // not an exception of the kind that has it
      }
    }
    return met;
  }
}

/** Ask the same of each account in which something goes wrong, at the same time; tell what came of it. */
export async function faults(ask, describe) {
  const accounts = Object.entries(JSON.parse(env.CLIENT_FAULTS));
  const met = await Promise.all(accounts.map(([, account]) => raised(() => ask(account), describe)));
  told.errors = Object.fromEntries(accounts.map(([name], place) => [name, met[place]]));
}

/** Print all of it, and end at once, whatever a client has left running. */
export function end() {
  process.stdout.write(`${JSON.stringify(told)}\n`, () => process.exit(0));
}
