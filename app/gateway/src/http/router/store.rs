//! Routes of the item store and of crons.

use crate::openapi::{CRONS, Routes, STORE, delete, flag, get, patch, post, put, text};
use crate::requests::bodies::{
    CronCount, CronCreate, CronPatch, CronSearch, ItemDelete, ItemPut, ItemSearch, NamespaceSearch,
};
use crate::responses::documented::{
    Count, Cron, Crons, ItemHits, ItemOrNull, Namespaces, StoreError,
};
use crate::routes::{crons, store};

const ITEMS: &str = "/store/items";
const CRON: &str = "/runs/crons/{cron_id}";

/// Routes under `/store`.
pub(super) fn items() -> Routes {
    let write = put(ITEMS, "put_item", "Stores an item.").tag(STORE);
    let read = get(ITEMS, "get_item", "Returns an item.").tag(STORE);
    let remove = delete(ITEMS, "delete_item", "Deletes an item.").tag(STORE);
    let search = post(
        "/store/items/search",
        "search_items",
        "Searches items in a namespace and its descendants.",
    )
    .tag(STORE);
    let namespaces = post("/store/namespaces", "list_namespaces", "Lists namespaces.").tag(STORE);
    Routes::default()
        .routes(
            write
                .body::<ItemPut>()
                .returns_empty(204, "Written.")
                .fails_with_text()
                .handled_by(store::put),
        )
        .routes(
            read.query("key", text(), "The item's key.")
                .query(
                    "namespace",
                    text(),
                    "Labels of the namespace, joined by dots.",
                )
                .query("refresh_ttl", flag(), "Extends the item's time to live.")
                .returns::<ItemOrNull>("The item, or null.")
                .fails_with_text()
                .fails_as::<StoreError>(400)
                .handled_by(store::get),
        )
        .routes(
            remove
                .body::<ItemDelete>()
                .returns_empty(204, "Deleted.")
                .fails_with_text()
                .handled_by(store::delete),
        )
        .routes(
            search
                .body::<ItemSearch>()
                .returns::<ItemHits>("A page of results.")
                .fails_with_text()
                .handled_by(store::search),
        )
        .routes(
            namespaces
                .body::<NamespaceSearch>()
                .returns::<Namespaces>("A page of results.")
                .handled_by(store::namespaces),
        )
}

/// Routes of crons.
pub(super) fn cron_routes() -> Routes {
    let on_thread = post(
        "/threads/{thread_id}/runs/crons",
        "create_thread_cron",
        "Creates a cron on a thread.",
    )
    .tag(CRONS)
    .ids();
    let create = post(
        "/runs/crons",
        "create_cron",
        "Creates a cron with a new thread for each run.",
    )
    .tag(CRONS);
    let search = post("/runs/crons/search", "search_crons", "Searches crons.").tag(CRONS);
    let count = post("/runs/crons/count", "count_crons", "Counts crons.").tag(CRONS);
    let read = get(CRON, "get_cron", "Returns a cron.").tag(CRONS).ids();
    let change = patch(CRON, "patch_cron", "Updates a cron.")
        .tag(CRONS)
        .ids();
    let remove = delete(CRON, "delete_cron", "Deletes a cron.")
        .tag(CRONS)
        .ids();
    Routes::default()
        .routes(
            on_thread
                .idempotent()
                .body::<CronCreate>()
                .returns::<Cron>("The cron.")
                .fails_with(&[409])
                .handled_by(crons::create_on_thread),
        )
        .routes(
            create
                .idempotent()
                .body::<CronCreate>()
                .returns::<Cron>("The cron.")
                .fails_with(&[404, 409])
                .handled_by(crons::create),
        )
        .routes(
            search
                .body::<CronSearch>()
                .returns::<Crons>("A page of results.")
                .handled_by(crons::search),
        )
        .routes(
            count
                .body::<CronCount>()
                .returns::<Count>("Number of matches.")
                .handled_by(crons::count),
        )
        .routes(read.returns::<Cron>("The cron.").handled_by(crons::get))
        .routes(
            change
                .body::<CronPatch>()
                .returns::<Cron>("The updated cron.")
                .fails_with(&[409])
                .handled_by(crons::patch),
        )
        .routes(
            remove
                .returns_empty(204, "Deleted.")
                .handled_by(crons::delete),
        )
}
