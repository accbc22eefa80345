// A gateway with a scripted model behind it, as two child processes.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const BINARIES = process.env.DEERFLOW_BIN_DIR;
const FLOWS = fileURLToPath(new URL("../flows", import.meta.url));
const TIMEOUT = 30_000;

const webUi = (baseUrl) => `config_version: 34
models:
  - name: fake
    use: langchain_openai:ChatOpenAI
    model: scripted-1
    api_key: none
    base_url: ${baseUrl}
    stream_chunk_timeout: 5
tool_groups: [{name: files}]
tools:
  - {name: ls, group: files, use: sandbox.ls}
  - {name: write_file, group: files, use: sandbox.write_file}
sandbox: {use: local}
memory: {enabled: false}
database: {backend: sqlite}
`;

/** Polls until the result is true: another process can only be polled. */
export async function until(ask, what) {
  const end = Date.now() + TIMEOUT;
  for (;;) {
    const answer = await ask();
    if (answer) return answer;
    if (Date.now() > end) throw new Error(`waited too long for ${what}`);
    await pause(20);
  }
}

/**
 * Starts model and gateway; `stop` ends both, `restart` kills the gateway and starts it again, `release` releases held answers with a word:
 * to their end, or up to a piece. `modelUrl` is the model's address, for further gateways.
 * @param config  returns the gateway's configuration for the model's address
 * @param env     additional environment variables of the gateway
 * @param listen  port of the gateway; 0 selects a free one
 */
export async function start({ config = webUi, env = {}, listen = 0 } = {}) {
  const model = spawn(path.join(BINARIES, "scripted-openai"), ["--strict"], { stdio: ["ignore", "pipe", "inherit"] });
  const [line] = await once(createInterface({ input: model.stdout }), "line");
  const home = await mkdtemp(path.join(os.tmpdir(), "deerflow-"));
  const [baseUrl] = /http:\/\/\S+/.exec(line);
  await writeFile(path.join(home, "config.yaml"), config(baseUrl));
  await cp(FLOWS, path.join(home, "flows"), { recursive: true });
  const port = listen || (await freePort());
  let gateway;
  let log = "";
  const serve = async () => {
    gateway = spawn(path.join(BINARIES, "deerflow"), ["serve"], {
      cwd: home,
      stdio: ["ignore", "pipe", "pipe"],
      env: {
        ...process.env,
        DEER_FLOW_PROJECT_ROOT: home,
        DEER_FLOW_CONFIG_PATH: path.join(home, "config.yaml"),
        DEER_FLOW_HOME: path.join(home, ".deer-flow"),
        DEER_FLOW_AUTH_DISABLED: "1",
        GATEWAY_HOST: "127.0.0.1",
        GATEWAY_PORT: String(port),
        NO_PROXY: "127.0.0.1",
        ...env,
      },
    });
    for (const output of [gateway.stdout, gateway.stderr]) output.on("data", (text) => (log += text));
    await until(() => {
      if (gateway.exitCode !== null) throw new Error(`the gateway ended:\n${log}`);
      return fetch(`http://127.0.0.1:${port}/health`).then((answer) => answer.ok, () => false);
    }, "the gateway");
  };
  const kill = async (child) => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  };
  await serve();
  const restart = async () => {
    await kill(gateway);
    await serve();
  };
  const stop = async () => {
    await Promise.all([kill(gateway), kill(model)]);
    await rm(home, { recursive: true });
  };
  const release = async (word, to) => {
    const answer = await fetch(new URL(`/__release?${new URLSearchParams(to ? { word, to } : { word })}`, baseUrl));
    if (!answer.ok) throw new Error(`the model did not accept the release: ${answer.status}`);
  };
  /** Returns the number of model calls whose script has this beginning and contains the word. */
  const calls = async (word, beginning = "") => {
    const log = await (await fetch(new URL("/__log", baseUrl))).json();
    return log.filter(({ user }) => user.startsWith(beginning) && user.includes(word)).length;
  };
  return { port, origin: `http://127.0.0.1:${port}`, modelUrl: baseUrl, release, calls, restart, stop };
}

async function freePort() {
  const server = net.createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}
