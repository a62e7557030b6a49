using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    ( name = "live", worker = .live ),
    ( name = "demo", worker = .demo ),
    ( name = "ai-emulator", external = ( address = "127.0.0.1:8799", http = () ) ),
  ],
  sockets = [
    ( name = "live", address = "127.0.0.1:0", http = (), service = "live" ),
    ( name = "demo", address = "127.0.0.1:0", http = (), service = "demo" ),
  ],
);

const live :Workerd.Worker = (
  modules = [ ( name = "batch.js", esModule = embed "batch.bundled.js" ) ],
  compatibilityDate = "2025-12-01",
  bindings = [
    ( name = "AI",
      wrapped = ( moduleName = "cloudflare-internal:ai-api",
                  innerBindings = [ ( name = "fetcher", service = "ai-emulator" ) ] ) ),
  ],
);

const demo :Workerd.Worker = (
  modules = [ ( name = "batch.js", esModule = embed "batch.bundled.js" ) ],
  compatibilityDate = "2025-12-01",
);
