// Serves the page on a separate origin.

import { once } from "node:events";
import http from "node:http";

import { build } from "esbuild";

const HTML = `<!doctype html><meta charset="utf-8"><title>Chat</title><div id="root"></div><script type="module" src="/page.js"></script>`;

/** Starts the server of the page; `stop` ends it. */
export async function startSite() {
  const bundled = await build({
    entryPoints: [new URL("page.jsx", import.meta.url).pathname],
    bundle: true,
    write: false,
    format: "esm",
    jsx: "automatic",
    define: { "process.env.NODE_ENV": '"production"' },
    logLevel: "warning",
  });
  const [{ text: script }] = bundled.outputFiles;
  const server = http.createServer((request, response) => {
    const [type, body] = request.url === "/page.js" ? ["text/javascript", script] : ["text/html", HTML];
    response.writeHead(200, { "content-type": `${type}; charset=utf-8` }).end(body);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    origin: `http://127.0.0.1:${server.address().port}`,
    stop: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}
