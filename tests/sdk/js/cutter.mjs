// A proxy that resets event streams and sockets in the middle, or passes them on slowly.

import { once } from "node:events";
import http from "node:http";
import { setTimeout as pause } from "node:timers/promises";

/** Returns the length of the first event or comment of a stream, or 0 if it is not complete. */
function lengthOfEvent(bytes) {
  const end = /\r?\n\r?\n/.exec(bytes.toString("latin1"));
  return end ? end.index + end[0].length : 0;
}

/** Returns the length of the first frame of a server's socket, or 0 if it is not complete. */
function lengthOfFrame(bytes) {
  if (bytes.length < 2) return 0;
  const short = bytes[1] & 0x7f;
  const head = short < 126 ? 2 : short === 126 ? 4 : 10;
  if (bytes.length < head) return 0;
  const length = head + (short < 126 ? short : short === 126 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2)));
  return length <= bytes.length ? length : 0;
}

const EVENTS = { lengthOf: lengthOfEvent, isEvent: (text) => /^event:/m.test(text) };
const FRAMES = { lengthOf: lengthOfFrame, isEvent: (text) => text.includes('"type":"event"') };

/** Passes on `budget.events` events, and then the rest of the number as a part of the next event. Returns `true` if it stopped for that. */
async function* cut(source, { lengthOf, isEvent }, budget) {
  let rest = Buffer.alloc(0);
  for await (const bytes of source) {
    rest = Buffer.concat([rest, bytes]);
    for (let length = lengthOf(rest); length > 0; length = lengthOf(rest)) {
      const whole = rest.subarray(0, length);
      rest = rest.subarray(length);
      const counts = isEvent(whole.toString("latin1"));
      if (counts && budget.events < 1) {
        yield whole.subarray(0, Math.floor(length * budget.events));
        return true;
      }
      yield whole;
      if (counts) budget.events -= 1;
      if (budget.events === 0) return true;
    }
  }
  yield rest;
  return false;
}

/** Passes on pieces of these sizes, one after the other, with a pause of some milliseconds after each. */
async function* slowly(source, { sizes, every }) {
  let count = 0;
  for await (const bytes of source) {
    for (let at = 0; at < bytes.length; ) {
      const size = sizes[count++ % sizes.length];
      yield bytes.subarray(at, at + size);
      at += size;
      await pause(every);
    }
  }
}

/** Writes all pieces, and then ends the connection, or resets `socket` if the source was cut. */
async function forward(source, to, { kind, budget, slow, socket }) {
  let isCut = false;
  const passed = budget ? (async function* () { isCut = yield* cut(source, kind, budget); })() : source;
  try {
    for await (const piece of slow ? slowly(passed, slow) : passed) {
      if (to.destroyed) break;
      await new Promise((resolve) => to.write(piece, resolve));
    }
    if (isCut) socket()?.resetAndDestroy();
    else to.end();
  } catch {
    to.destroy();
  } finally {
    source.destroy();
  }
}

/**
 * Passes everything on.
 * @param port  port of the server, or a function that selects one for each request
 * @param cuts  the n-th event stream or socket is reset after `cuts[n]` events; 2.5 is in the middle of the third
 * @param slow  if set, all streams and sockets arrive in pieces of `sizes` bytes, `every` so many milliseconds
 */
export async function startCutter(port, cuts, slow) {
  const portOf = typeof port === "function" ? port : () => port;
  const left = [...cuts];
  const budgets = new Set();
  const requests = [];
  /** Passes on an event stream or a socket, up to its cut. */
  const stream = async (source, to, kind, socket) => {
    const budget = { events: left.shift() ?? Infinity };
    budgets.add(budget);
    await forward(source, to, { kind, budget, slow, socket });
    budgets.delete(budget);
  };
  const record = ({ method, url, headers }) => requests.push({ method, path: url.split("?")[0], cursor: headers["last-event-id"] });
  const server = http.createServer((request, response) => {
    record(request);
    const forwarded = http.request({ port: portOf(), host: "127.0.0.1", path: request.url, method: request.method, headers: request.headers });
    request.pipe(forwarded);
    forwarded.on("error", () => response.destroy());
    response.on("close", () => forwarded.destroy());
    forwarded.on("response", (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      response.flushHeaders();
      if (answer.headers["content-type"]?.startsWith("text/event-stream")) stream(answer, response, EVENTS, () => response.socket);
      else forward(answer, response, {});
    });
  });
  const sockets = new Set();
  server.on("upgrade", (request, socket, head) => {
    record(request);
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    const forwarded = http.request({ port: portOf(), host: "127.0.0.1", path: request.url, headers: request.headers });
    forwarded.on("error", () => socket.destroy());
    forwarded.on("response", () => socket.destroy());
    forwarded.on("upgrade", (answer, connection, first) => {
      const lines = Object.entries(answer.headers).map(([name, value]) => `${name}: ${value}\r\n`);
      socket.write(`HTTP/1.1 ${answer.statusCode} ${answer.statusMessage}\r\n${lines.join("")}\r\n`);
      if (first.length > 0) connection.unshift(first);
      if (head.length > 0) socket.unshift(head);
      stream(connection, socket, FRAMES, () => socket);
      forward(socket, connection, { slow });
    });
    forwarded.end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    origin: `http://127.0.0.1:${server.address().port}`,
    /** Returns the requests for streams and sockets. */
    streams: () => requests.filter(({ path }) => path.endsWith("/stream") || path.endsWith("/stream/events")),
    /** Resets all open streams and sockets after this number of further events. */
    cutAfter: (events) => budgets.forEach((budget) => (budget.events = events)),
    stop: () => {
      server.close();
      server.closeAllConnections();
      for (const socket of sockets) socket.destroy();
    },
  };
}
