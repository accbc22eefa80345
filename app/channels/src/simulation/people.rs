//! People: they write messages, which the platform delivers once or more often.

use std::sync::Arc;

use tokio::time::sleep;

use super::world::{CHATS, World};

/// Writes some messages in each chat.
pub(super) async fn write(world: &Arc<World>) {
    let [one, two, three] = CHATS;
    tokio::join!(
        write_in(world, one),
        write_in(world, two),
        write_in(world, three)
    );
}

async fn write_in(world: &Arc<World>, chat: &'static str) {
    let chance = &world.chance;
    let mut delivered = Vec::new();
    for number in 0..1 + chance.below(5) {
        sleep(chance.millis(0, 15_000)).await;
        let label = format!("{chat}.{number}");
        let pace = match chance.below(3) {
            0 => String::new(),
            1 => format!("[[slow 4x{}ms]] ", 1 + chance.below(200)),
            _ => format!("[[slow 10x{}ms]] ", 1 + chance.below(2_000)),
        };
        let text = format!("{pace}then say {label} one two three");
        let event = world.platform.message(chat, "ann", &text);
        world.log(format_args!("{label} is written"));
        {
            let mut observed = world.observed.lock();
            observed.counts.messages += 1;
            observed.written.entry(chat).or_default().push(label);
        }
        world.platform.deliver(event.clone());
        delivered.push(event);
        while chance.of_thousand(250) {
            sleep(chance.millis(0, 4_000)).await;
            world.platform.deliver(chance.pick(&delivered).clone());
        }
    }
}
