//! People and workspaces outside of the lists.

use super::{Verdict, expect};
use crate::core_tests::rig::{Rig, within};
use crate::platform::{Event, EventBody, Press};

/// Texts of strangers.
const TEXTS: [&str; 8] = [
    "then say Mine.",
    "/new",
    "/stop",
    "/status",
    "/memory",
    "/goal steal",
    "/bootstrap",
    "/unknown task",
];

pub(super) async fn run(rig: &Rig, case: u64, kind: u64, variant: u64) -> Verdict {
    let chat = format!("{}{case}", ["g-list", "c-list"][variant as usize % 2]);
    let text = TEXTS[(case / 7) as usize % TEXTS.len()];
    let (person, workspace) = match kind {
        0 => ("mallory", "W1"),
        1 => ("ann", "W2"),
        2 => ("ann", ""),
        // Ids that only look like those of the lists.
        3 => ("Ann", "W1"),
        4 => ("ann ", "W1"),
        _ => return during_an_answer(rig, &chat, text).await,
    };
    let threads = rig.threads.0.lock().len();
    rig.platform
        .deliver(message(rig, &chat, person, workspace, text));
    permitted(rig, &chat, case).await?;
    let texts = rig.platform.texts(&chat);
    expect(
        texts.len() == 1,
        format!("{person} in {workspace}: {texts:?}"),
    )?;
    let created = rig.threads.0.lock().len() - threads;
    expect(created == 1, format!("{created} threads were created"))
}

fn message(rig: &Rig, chat: &str, person: &str, workspace: &str, text: &str) -> Event {
    let mut event = rig.platform.message(chat, person, text);
    event.workspace = workspace.to_owned();
    event
}

/// Waits for the answer to a message of a person within the lists.
async fn permitted(rig: &Rig, chat: &str, case: u64) -> Verdict {
    let text = format!("Permitted {case}.");
    rig.platform
        .deliver(message(rig, chat, "ann", "W1", &format!("then say {text}")));
    let answered = rig
        .platform
        .wait_for(|platform| platform.texts(chat).contains(&text).then_some(()));
    within(answered).await;
    Ok(())
}

/// A stranger writes, replies and presses while a person within the lists is answered.
async fn during_an_answer(rig: &Rig, chat: &str, text: &str) -> Verdict {
    let first = message(
        rig,
        chat,
        "ann",
        "W1",
        "[[slow 30x10ms]] then say Complete.",
    );
    rig.platform.deliver(first.clone());
    let shown = within(rig.platform.wait_for(|platform| {
        let messages = platform.messages().into_iter();
        let mut of_chat = messages.filter(|message| message.chat == chat);
        of_chat.find(|message| !message.buttons.is_empty())
    }))
    .await;
    let mut reply = message(rig, chat, "mallory", "W1", text);
    if let EventBody::Message(message) = &mut reply.body {
        message.reply_to = Some(first.id);
    }
    rig.platform.deliver(reply);
    let mut press = message(rig, chat, "mallory", "W1", "");
    press.body = EventBody::Press(Press {
        data: shown.buttons[0].clone(),
        message: Some(shown.id),
    });
    rig.platform.deliver(press);
    let confirmed = rig.platform.confirmed().len();
    let texts = within(rig.platform.answers(chat, 1)).await;
    expect(texts == ["Complete."], format!("answered {texts:?}"))?;
    expect(
        rig.platform.confirmed().len() == confirmed,
        "the press was confirmed",
    )
}
