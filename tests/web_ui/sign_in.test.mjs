// Sign-in in the UI: the first administrator, a second person, and what each sees.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { startGateway, startUi } from "./rig.mjs";

const PASSWORD = "correct horse 17 battery";

let gateway, ui;
before(async () => {
  gateway = await startGateway({ env: { DEER_FLOW_AUTH_DISABLED: "0" } });
  ui = await startUi({ DEER_FLOW_AUTH_DISABLED: "0" });
});
after(async () => {
  await ui?.stop();
  await gateway?.stop();
});

const inWorkspace = (page) => page.waitForURL(/\/workspace/);

/** Sends a message in a new chat and waits for the answer. */
async function chat(page, text) {
  await page.goto("/workspace/chats/new");
  await page.getByRole("textbox").first().fill(text);
  await page.keyboard.press("Enter");
  await page.getByText(`Echo: ${text}`).first().waitFor();
}

/** Returns the chats of the sidebar's list. */
const chats = (page) =>
  page.evaluate(async () => {
    const csrf = document.cookie.split("; ").find((part) => part.startsWith("csrf_token="))?.slice(11);
    const answer = await fetch("/api/langgraph/threads/search", {
      method: "POST",
      headers: { "content-type": "application/json", "x-csrf-token": csrf },
      body: "{}",
    });
    return (await answer.json()).length;
  });

test("the first visitor becomes administrator, a second registers, and neither sees the other's chats", async () => {
  const admin = await ui.open();
  await admin.goto("/workspace");
  await admin.waitForURL(/\/setup/);
  await admin.locator("#email").fill("Ann@Example.com");
  await admin.locator("#password").fill(PASSWORD);
  await admin.locator("#confirmPassword").fill(PASSWORD);
  await admin.locator("button[type=submit]").click();
  await inWorkspace(admin);
  await chat(admin, "Hello from Ann");
  assert.equal(await chats(admin), 1);

  const person = await ui.open();
  await person.goto("/workspace");
  await person.waitForURL(/\/login/);
  await person.getByText(/sign up/i).click();
  await person.locator("#email").fill("bob@example.com");
  await person.locator("#password").fill("password");
  await person.locator("button[type=submit]").click();
  await person.getByText(/common|password/i).first().waitFor();
  await person.locator("#password").fill(PASSWORD);
  await person.locator("button[type=submit]").click();
  await inWorkspace(person);
  assert.equal(await chats(person), 0);
  await chat(person, "Hello from Bob");
  assert.equal(await chats(person), 1);

  // A reload keeps both signed in; a wrong password does not sign in.
  await admin.reload();
  await inWorkspace(admin);
  assert.equal(await chats(admin), 1);
  const stranger = await ui.open();
  await stranger.goto("/login");
  await stranger.locator("#email").fill("ann@example.com");
  await stranger.locator("#password").fill("wrong password 1");
  await stranger.locator("button[type=submit]").click();
  await stranger.getByText("Incorrect email or password").waitFor();
  await stranger.locator("#password").fill(PASSWORD);
  await stranger.locator("button[type=submit]").click();
  await inWorkspace(stranger);
  assert.equal(await chats(stranger), 1);
});

test("a program without a key is refused once there is an account", async () => {
  const answer = await fetch(`${gateway.origin}/api/langgraph/threads/search`, { method: "POST", headers: { "content-type": "application/json" }, body: "{}" });
  assert.equal(answer.status, 401);
});
