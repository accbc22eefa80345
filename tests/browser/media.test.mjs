// Files of a thread that a browser opens.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { start } from "../sdk/js/rig.mjs";
import { startBrowser } from "./chat.mjs";

const TIMEOUT = 30_000;

let gateway, browser;
before(async () => {
  gateway = await start();
  browser = await startBrowser();
});
after(async () => {
  await browser?.close();
  await gateway?.stop();
});

/** Returns a WAV file with this many seconds of silence, at 8,000 bytes per second. */
function silence(seconds) {
  const samples = Buffer.alloc(8_000 * seconds, 128);
  const head = Buffer.alloc(44);
  head.write("RIFF");
  head.writeUInt32LE(36 + samples.length, 4);
  head.write("WAVEfmt ", 8);
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(8_000, 24);
  head.writeUInt32LE(8_000, 28);
  head.writeUInt16LE(1, 32);
  head.writeUInt16LE(8, 34);
  head.write("data", 36);
  head.writeUInt32LE(samples.length, 40);
  return Buffer.concat([head, samples]);
}

/** Uploads a file to a new thread and returns its URL. */
async function upload(name, content) {
  const thread = await fetch(`${gateway.origin}/api/threads`, { method: "POST", headers: { "content-type": "application/json" }, body: "{}" });
  const { thread_id: id } = await thread.json();
  const form = new FormData();
  form.append("files", new Blob([content]), name);
  const answer = await fetch(`${gateway.origin}/api/threads/${id}/uploads`, { method: "POST", body: form });
  const { files } = await answer.json();
  return gateway.origin + files[0].artifact_url;
}

test("a recording plays in the browser's own player", async () => {
  const page = await browser.newPage();
  const ranges = [];
  page.on("response", (answer) => ranges.push([answer.status(), answer.request().headers().range]));
  await page.goto(await upload("silence.wav", silence(20)));
  const ready = () => document.querySelector("video")?.readyState === HTMLMediaElement.HAVE_ENOUGH_DATA;
  await page.waitForFunction(ready, undefined, { timeout: TIMEOUT, polling: 20 });
  assert.equal(await page.evaluate(() => document.querySelector("video").duration), 20);
  assert.ok(ranges.some(([status, range]) => status === 206 && range?.startsWith("bytes=")), JSON.stringify(ranges));
  await page.close();
});

test("a film plays in the browser's own player", async () => {
  const page = await browser.newPage();
  await page.goto(`${gateway.origin}/ok`);
  // The browser makes the film, too.
  const film = await page.evaluate(async () => {
    const canvas = document.createElement("canvas");
    const brush = canvas.getContext("2d");
    const recorder = new MediaRecorder(canvas.captureStream(25), { mimeType: "video/webm" });
    const parts = [];
    recorder.ondataavailable = ({ data }) => parts.push(data);
    const stopped = new Promise((resolve) => (recorder.onstop = resolve));
    recorder.start();
    for (let frame = 0; frame < 20; frame++) {
      brush.fillStyle = `rgb(${frame * 12}, 0, 0)`;
      brush.fillRect(0, 0, canvas.width, canvas.height);
      await new Promise(requestAnimationFrame);
    }
    recorder.stop();
    await stopped;
    return [...new Uint8Array(await new Blob(parts).arrayBuffer())];
  });
  await page.goto(await upload("film.webm", Buffer.from(film)));
  const ready = () => document.querySelector("video")?.readyState >= HTMLMediaElement.HAVE_CURRENT_DATA;
  await page.waitForFunction(ready, undefined, { timeout: TIMEOUT, polling: 20 });
  assert.ok((await page.evaluate(() => document.querySelector("video").videoWidth)) > 0);
  await page.close();
});

test("a PDF is shown in the browser's own viewer", async () => {
  const page = await browser.newPage();
  await page.setContent("<p>A page</p>");
  const document = await page.pdf();
  const refused = [];
  page.on("console", (message) => refused.push(message.text()));
  const viewer = page.waitForResponse((answer) => answer.url().startsWith("chrome-extension://"), { timeout: TIMEOUT });
  await page.goto(await upload("page.pdf", document));
  await viewer;
  assert.deepEqual(refused.filter((text) => text.includes("Content Security Policy")), []);
  await page.close();
});

test("a picture is shown and a script in a drawing is not run", async () => {
  const page = await browser.newPage();
  const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
  await page.goto(await upload("pixel.png", Buffer.from(pixel, "base64")));
  assert.equal(await page.evaluate(() => document.querySelector("img").naturalWidth), 1);
  const drawing = `<svg xmlns="http://www.w3.org/2000/svg"><script>document.title = "ran"</script></svg>`;
  const downloaded = page.waitForEvent("download", { timeout: TIMEOUT });
  // A download ends the navigation without a page.
  await page.goto(await upload("drawing.svg", drawing)).catch((error) => assert.match(String(error), /Download is starting/));
  assert.equal((await downloaded).suggestedFilename(), "drawing.svg");
  assert.notEqual(await page.title(), "ran");
  await page.close();
});
