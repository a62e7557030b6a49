// workersai-emulator for JavaScript: the Miniflare plugin, env.AI without one, the control plane, and a server.
export { createAi } from "./src/ai.js";
export { connect, ControlError } from "./src/control.js";
export { plugins } from "./src/plugin.js";
export { start } from "./src/start.js";
export { VERSION } from "./src/version.js";
