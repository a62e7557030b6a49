using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    ( name = "main", worker = .worker ),
    ( name = "ai-emulator", external = ( address = "127.0.0.1:8799", http = () ) ),
  ],
  sockets = [ ( name = "http", address = "127.0.0.1:0", http = (), service = "main" ) ],
);

const worker :Workerd.Worker = (
  modules = [
    ( name = "worker.js", esModule = embed "worker.js" ),
    ( name = "answers.js", esModule = embed "answers.js" ),
  ],
  compatibilityDate = "2025-12-01",
  bindings = [
    ( name = "AI",
      wrapped = ( moduleName = "cloudflare-internal:ai-api",
                  innerBindings = [ ( name = "fetcher", service = "ai-emulator" ) ] ) ),
  ],
);
