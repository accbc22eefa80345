//! Routes of user memory.

use super::operations::{change, read, remove, send};
use crate::openapi::Routes;
use crate::openapi::groups::MEMORY;
use crate::requests::bodies::{FactAdd, FactPatch, MemoryImport};
use crate::routes::memory;

pub(super) fn routes() -> Routes {
    const FACT: &str = "/memory/facts/{fact_id}";
    let status = read(
        MEMORY,
        "/memory/status",
        "get_memory_status",
        "Returns the settings of memory and its content.",
    );
    Routes::default()
        .routes(
            read(
                MEMORY,
                "/memory",
                "get_memory",
                "Returns the user's memory.",
            )
            .handled_by(memory::get),
        )
        .routes(
            remove(
                MEMORY,
                "/memory",
                "clear_memory",
                "Clears the user's memory.",
            )
            .handled_by(memory::clear),
        )
        .routes(
            send(
                MEMORY,
                "/memory/reload",
                "reload_memory",
                "Reloads the user's memory.",
            )
            .handled_by(memory::reload),
        )
        .routes(
            read(
                MEMORY,
                "/memory/export",
                "export_memory",
                "Exports the user's memory.",
            )
            .handled_by(memory::get),
        )
        .routes(
            send(
                MEMORY,
                "/memory/import",
                "import_memory",
                "Imports a memory, which replaces the current one.",
            )
            .body::<MemoryImport>()
            .handled_by(memory::import),
        )
        .routes(
            read(
                MEMORY,
                "/memory/config",
                "get_memory_config",
                "Returns the settings of memory.",
            )
            .handled_by(memory::config),
        )
        .routes(status.handled_by(memory::status))
        .routes(
            send(MEMORY, "/memory/facts", "add_fact", "Adds a fact.")
                .body::<FactAdd>()
                .fails_with(&[409])
                .handled_by(memory::add),
        )
        .routes(
            change(MEMORY, FACT, "correct_fact", "Updates a fact.")
                .body::<FactPatch>()
                .fails_with(&[409])
                .handled_by(memory::correct),
        )
        .routes(remove(MEMORY, FACT, "remove_fact", "Deletes a fact.").handled_by(memory::remove))
}
