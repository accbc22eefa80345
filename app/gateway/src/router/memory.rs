//! What stays beyond threads: items, and runs by the clock.

use crate::openapi::{CRONS, Routes, STORE, delete, flag, get, patch, post, put, text};
use crate::routes::{crons, store};

const ITEMS: &str = "/store/items";
const CRON: &str = "/runs/crons/{cron_id}";

/// `/store`.
pub(super) fn items() -> Routes {
    let write = put(ITEMS, "put_item", "Writes an item whole.").tag(STORE);
    let read = get(ITEMS, "get_item", "Reads an item.").tag(STORE);
    let remove = delete(ITEMS, "delete_item", "Removes an item.").tag(STORE);
    let search = post(
        "/store/items/search",
        "search_items",
        "Finds items of a namespace and of those below it.",
    )
    .tag(STORE);
    let namespaces = post("/store/namespaces", "list_namespaces", "Lists namespaces.").tag(STORE);
    Routes::default()
        .routes(
            write
                .body("ItemPut")
                .answers_empty(204, "Written.")
                .refuses_in_text()
                .by(store::put),
        )
        .routes(
            read.query("key", text(), "The item's key.")
                .query(
                    "namespace",
                    text(),
                    "The namespace's labels, with dots between them.",
                )
                .query(
                    "refresh_ttl",
                    flag(),
                    "Whether it stays longer because it was read.",
                )
                .answers("ItemOrNull", "The item, or null.")
                .refuses_in_text()
                .refuses_as("StoreError")
                .by(store::get),
        )
        .routes(
            remove
                .body("ItemDelete")
                .answers_empty(204, "There is none now.")
                .refuses_in_text()
                .by(store::delete),
        )
        .routes(
            search
                .body("ItemSearch")
                .answers("ItemHits", "A page of them.")
                .refuses_in_text()
                .by(store::search),
        )
        .routes(
            namespaces
                .body("NamespaceSearch")
                .answers("Namespaces", "A page of them.")
                .by(store::namespaces),
        )
}

/// Runs by the clock.
pub(super) fn by_clock() -> Routes {
    let on_thread = post(
        "/threads/{thread_id}/runs/crons",
        "create_thread_cron",
        "Has a clock begin runs on a thread.",
    )
    .tag(CRONS)
    .ids();
    let create = post("/runs/crons", "create_cron", "Has a clock begin runs.").tag(CRONS);
    let search = post("/runs/crons/search", "search_crons", "Finds crons.").tag(CRONS);
    let count = post("/runs/crons/count", "count_crons", "Counts crons.").tag(CRONS);
    let read = get(CRON, "get_cron", "Reads a cron.").tag(CRONS).ids();
    let change = patch(CRON, "patch_cron", "Changes a cron.")
        .tag(CRONS)
        .ids();
    let remove = delete(CRON, "delete_cron", "Removes a cron.")
        .tag(CRONS)
        .ids();
    Routes::default()
        .routes(
            on_thread
                .repeatable()
                .body("CronCreate")
                .answers("Cron", "The cron.")
                .refuses(&[409])
                .by(crons::create_on_thread),
        )
        .routes(
            create
                .repeatable()
                .body("CronCreate")
                .answers("Cron", "The cron.")
                .refuses(&[404, 409])
                .by(crons::create),
        )
        .routes(
            search
                .body("CronSearch")
                .answers("Crons", "A page of them.")
                .by(crons::search),
        )
        .routes(
            count
                .body("CronCount")
                .answers("Count", "How many there are.")
                .by(crons::count),
        )
        .routes(read.answers("Cron", "The cron.").by(crons::get))
        .routes(
            change
                .body("CronPatch")
                .answers("Cron", "The cron as it is now.")
                .refuses(&[409])
                .by(crons::patch),
        )
        .routes(remove.answers_empty(204, "It is gone.").by(crons::delete))
}
