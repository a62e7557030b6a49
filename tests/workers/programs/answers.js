// What one env.AI answers to everything that a Worker asks of it: the same calls whatever the runtime is.

const EMBEDDING = "@cf/baai/bge-m3";
const TEXT = "@cf/meta/llama-3.1-8b-instruct";
const SPEECH = "@cf/openai/whisper";
const PICTURE = "@cf/stabilityai/stable-diffusion-xl-base-1.0";

/** Everything, by part. What is thrown is an answer as well. */
export async function answers(AI) {
  const told = {};
  for (const [part, ask] of Object.entries(PARTS)) {
    told[part] = await ask(AI).catch((fault) => thrown(fault, AI));
  }
  return told;
}

const PARTS = {
  batch: async (AI) => {
    const requests = ["orange cloud", "a llama"].map((text, n) => ({ text, external_reference: `ref-${n}` }));
    const queued = await AI.run(EMBEDDING, { requests }, { queueRequest: true });
    const polls = [];
    for (let n = 0; n < 3; n++) polls.push(await AI.run(EMBEDDING, { request_id: queued.request_id }));
    return { queued, polls };
  },

  embedding: async (AI) => ({
    answer: await AI.run(EMBEDDING, { text: ["orange cloud"] }),
    lastRequestId: AI.lastRequestId,
    aiGatewayLogId: AI.aiGatewayLogId,
  }),

  chat: (AI) => AI.run(TEXT, { prompt: "Say hello" }),
  stream: (AI) => streamed(AI, "Say hello"),
  // A rule of the test's lets this reply drip.
  "slow stream": (AI) => streamed(AI, "Say it slowly"),

  raw: async (AI) => {
    const reply = await AI.run(EMBEDDING, { text: "a llama" }, { returnRawResponse: true });
    return { status: reply.status, type: reply.headers.get("content-type"), answer: await reply.json() };
  },

  gateway: async (AI) => {
    const answer = await AI.run(EMBEDDING, { text: "a llama" }, { gateway: { id: "ours" } });
    return { answer, aiGatewayLogId: AI.aiGatewayLogId };
  },

  speech: async (AI) => {
    const sound = new Response(new Uint8Array(2048)).body;
    return AI.run(SPEECH, { audio: { body: sound, contentType: "audio/wav" } });
  },

  picture: async (AI) => {
    const bytes = new Uint8Array(await new Response(await AI.run(PICTURE, { prompt: "a llama" })).arrayBuffer());
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
    return { length: bytes.length, digest: Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("") };
  },

  models: async (AI) => {
    const found = await AI.models({ task: "Text Embeddings", per_page: 3 });
    return found.map(({ id, name, task }) => ({ id, name, task: task.name }));
  },

  // Before toMarkdown(files): Node's proxy takes a method that once gave a promise for one that always does.
  formats: async (AI) => (await AI.toMarkdown().supported()).map(({ extension }) => extension),

  markdown: (AI) => AI.toMarkdown([{ name: "note.html", blob: new Blob(["<h1>Note</h1>"], { type: "text/html" }) }]),

  // What needs a call that is no HTTP ends, one way or another.
  rpc: async (AI) => {
    try {
      return await AI.aiSearch().list();
    } catch {
      return "refused";
    }
  },

  "no such model": (AI) => AI.run("@cf/nobody/nothing", { text: "a llama" }),
  "bad input": (AI) => AI.run(EMBEDDING, { nothing: true }),
  "no such batch": (AI) => AI.run(EMBEDDING, { request_id: "00000000-0000-4000-8000-000000000000" }),
  "does not queue": (AI) => AI.run(SPEECH, { requests: [{ audio: [0] }] }, { queueRequest: true }),
  // Rules of the test's make these happen.
  "out of capacity": (AI) => AI.run(EMBEDDING, { text: "out of capacity" }),
  "bad gateway": (AI) => AI.run(EMBEDDING, { text: "bad gateway" }),
};

async function streamed(AI, prompt) {
  const stream = await AI.run(TEXT, { prompt, stream: true });
  const text = new TextDecoder();
  let events = "";
  let pieces = 0;
  for await (const piece of stream) {
    events += text.decode(piece, { stream: true });
    pieces += 1;
  }
  return { events, pieces };
}

function thrown(fault, AI) {
  return {
    name: fault.name,
    message: fault.message,
    status: AI.lastRequestHttpStatusCode,
    code: AI.lastRequestInternalStatusCode,
  };
}
