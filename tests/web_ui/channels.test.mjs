// The settings page of chat channels: from credentials to a connected person, and back.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { startGateway, startPlatform, startUi, until } from "./rig.mjs";

const TOKEN = "123456:TEST-token_1";
const PERSON = 77;

let platform, gateway, ui;
before(async () => {
  platform = await startPlatform("telegram");
  gateway = await startGateway({
    // A gateway without authentication has one user, whom it shows as connected.
    env: { DEER_FLOW_AUTH_DISABLED: "0" },
    config: (model) => `config_version: 34
models: [{name: fake, use: "langchain_openai:ChatOpenAI", model: scripted-1, api_key: none, base_url: "${model}"}]
memory: {enabled: false}
channel_connections: {enabled: true, telegram: {enabled: true}}
channels: {telegram: {enabled: true, api_base: "${platform.base}"}}
`,
  });
  ui = await startUi({ DEER_FLOW_AUTH_DISABLED: "1" });
});
after(async () => {
  await ui?.stop();
  await gateway?.stop();
  await platform?.stop();
});

/** Opens the page of channels and returns the row of Telegram. */
async function openChannels(page) {
  await page.goto("/workspace/chats/new");
  await page.getByRole("button", { name: /settings/i }).last().click();
  await page.getByRole("menuitem", { name: "Settings" }).click();
  const dialog = page.getByRole("dialog", { name: "Settings" });
  await dialog.getByRole("button", { name: "Channels" }).click();
  const row = dialog.locator('[data-slot="item"]', { hasText: "Telegram" });
  await row.waitFor();
  return row;
}

test("a person enters credentials, connects by code, chats and disconnects", async () => {
  const page = await ui.open();
  let row = await openChannels(page);
  await row.getByRole("button", { name: "Connect" }).click();
  const setup = page.getByRole("dialog", { name: "Connect Telegram" });
  await setup.getByLabel("Bot token").fill(TOKEN);
  await setup.getByLabel("Bot username").fill("test_bot");

  const connected = page.waitForResponse((answer) => answer.url().endsWith("/api/channels/telegram/connect"));
  const opened = page.context().waitForEvent("page");
  await setup.getByRole("button", { name: /connect|save/i }).click();
  const { code, url } = await (await connected).json();
  assert.match(url, new RegExp(`^https://t\\.me/[^?]+\\?start=${code}$`));
  await (await opened).close();

  await until(async () => !(await platform.act("state")).early_calls, "the bot");
  await platform.act("say", { chat: PERSON, from: PERSON, text: `/start ${code}` });
  row = page.getByRole("dialog", { name: "Settings" }).locator('[data-slot="item"]', { hasText: "Telegram" });
  await row.getByText("Connected", { exact: true }).waitFor();

  await platform.act("say", { chat: PERSON, from: PERSON, text: "Hello" });
  const answered = async () => (await platform.act(`messages?chat=${PERSON}`)).some(({ text }) => text === "Echo: Hello");
  await until(answered, "the answer");

  // Another visit shows the credentials masked.
  row = await openChannels(page);
  await row.getByRole("button", { name: "Modify" }).click();
  assert.equal(await page.getByRole("dialog", { name: "Modify Telegram" }).getByLabel("Bot token").inputValue(), "********");
  assert.ok(!(await page.content()).includes(TOKEN));
  await page.keyboard.press("Escape");

  const disconnected = page.waitForResponse((answer) => answer.request().method() === "DELETE");
  await row.getByRole("button", { name: "Disconnect" }).click();
  assert.ok((await disconnected).ok());
  const { connections } = await (await fetch(`${gateway.origin}/api/channels/connections`)).json();
  assert.ok(connections.every(({ status }) => status !== "connected"), JSON.stringify(connections));
});
