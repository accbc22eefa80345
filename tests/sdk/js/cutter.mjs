// A proxy that resets event streams in the middle.

import { once } from "node:events";
import http from "node:http";

/** The end of an event or a comment. */
const FRAME = /\r?\n\r?\n/;

/** Passes everything on; resets the n-th event stream after `cuts[n]` events. */
export async function startCutter(port, cuts) {
  const left = [...cuts];
  const requests = [];
  const server = http.createServer((request, response) => {
    requests.push({ method: request.method, path: request.url.split("?")[0], cursor: request.headers["last-event-id"] });
    const forwarded = http.request({ port, host: "127.0.0.1", path: request.url, method: request.method, headers: request.headers });
    request.pipe(forwarded);
    forwarded.on("error", () => response.destroy());
    forwarded.on("response", (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      const streams = answer.headers["content-type"]?.startsWith("text/event-stream");
      let budget = streams && left.length > 0 ? left.shift() : Infinity;
      let rest = "";
      answer.on("error", () => response.destroy());
      answer.on("end", () => budget > 0 && response.end(rest, "latin1"));
      answer.on("data", (bytes) => {
        if (budget === Infinity) return void response.write(bytes);
        rest += bytes.toString("latin1");
        // Even if more arrives at once, nothing is forwarded after the last permitted event.
        for (let end = FRAME.exec(rest); end && budget > 0; end = FRAME.exec(rest)) {
          const frame = rest.slice(0, end.index + end[0].length);
          rest = rest.slice(frame.length);
          budget -= /^event:/m.test(frame) ? 1 : 0;
          const sent = budget > 0 ? undefined : () => response.socket?.resetAndDestroy();
          response.write(frame, "latin1", sent);
        }
        if (budget <= 0) answer.destroy();
      });
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    origin: `http://127.0.0.1:${server.address().port}`,
    streams: () => requests.filter((request) => request.path.endsWith("/stream")),
    stop: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}
