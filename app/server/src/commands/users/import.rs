//! `deerflow users import`: accounts of a DeerFlow installation.

use std::io::Write;
use std::path::Path;

use deerflow_accounts::{Operator, plan_import};
use deerflow_domain::accounts::{AuditAction, NewAuditEntry};
use deerflow_stores::read_foreign_users;
use serde_json::{Value, json};

use super::Users;
use crate::commands::table::write_json;

impl Users<'_> {
    /// Imports the users of a file. Existing accounts stay as they are.
    pub(super) async fn import(
        &self,
        source: &Path,
        as_json: bool,
        out: &mut dyn Write,
    ) -> anyhow::Result<()> {
        let plan = plan_import(read_foreign_users(source).await?);
        let entry = NewAuditEntry::new(AuditAction::AccountImported, self.now);
        let entry = Operator::default().sign(entry);
        let outcome = self.stores.accounts.import(plan.accounts, entry).await?;
        if as_json {
            let rejected = plan.rejected.iter();
            let rejected: Vec<Value> = rejected
                .map(|user| json!({ "id": user.id, "email": user.email, "reason": user.reason }))
                .collect();
            let shown = json!({
                "imported": outcome.imported,
                "skipped": outcome.skipped,
                "rejected": rejected,
            });
            return Ok(write_json(&shown, out)?);
        }
        writeln!(
            out,
            "imported {} accounts, skipped {} that exist",
            outcome.imported.len(),
            outcome.skipped.len()
        )?;
        for user in &plan.rejected {
            writeln!(
                out,
                "rejected {:?} (id {:?}): {}",
                user.email, user.id, user.reason
            )?;
        }
        Ok(())
    }
}
