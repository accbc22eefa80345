// The elements of both chats: the messages of a thread and the user's controls.

import { useEffect } from "react";

const textOf = ({ content }) => (typeof content === "string" ? content : content.map((block) => block.text ?? "").join(""));

/** All texts that were rendered for the last answer, for tests. */
window.drawn = [];

/** Returns the input of a run with a message of the user. */
export const human = (content) => ({ messages: [{ type: "human", content }] });

/** Returns the text that the user entered. */
export const words = () => document.getElementById("words").value;

/**
 * @param chat      what a hook returned: `messages`, `isLoading`, `error`, `interrupt`
 * @param branches  returns the controls of a message's branches
 */
export function Conversation({ chat, send, answer, stop, branches, children }) {
  const last = chat.messages.at(-1);
  const shown = last?.type === "ai" ? textOf(last) : "";
  useEffect(() => void window.drawn.push(shown), [shown]);
  return (
    <main data-loading={chat.isLoading} data-error={chat.error ? String(chat.error) : undefined}>
      <ol>
        {chat.messages.map((message) => (
          <li key={message.id} data-type={message.type}>
            <p>{textOf(message)}</p>
            {message.tool_calls?.map((call) => <code key={call.id}>{`${call.name} ${JSON.stringify(call.args)}`}</code>)}
            {branches(message)}
          </li>
        ))}
      </ol>
      {children}
      {chat.interrupt && <aside>{chat.interrupt.value?.question}</aside>}
      <input id="words" />
      <button id="send" onClick={send}>send</button>
      <button id="answer" onClick={answer}>answer</button>
      <button id="stop" onClick={stop}>stop</button>
    </main>
  );
}
