//! `deerflow flow check`: validates files.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use serde_json::{Value, json};

use super::document::FlowFile;
use super::report::{one_line, write_findings};
use crate::cli::CheckArgs;
use crate::commands::table::write_json;
use crate::flows::BuiltInKinds;

/// Exit code for files that cannot be read.
const UNREADABLE: u8 = 2;

/// Writes the findings of all files to `out`, and which files are valid to `err`. The exit code is 1
/// if a file has errors, and 2 if a file cannot be read.
pub(super) fn check(
    args: &CheckArgs,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> anyhow::Result<ExitCode> {
    let (mut invalid, mut unreadable) = (false, false);
    let mut reports = Vec::new();
    for path in &args.files {
        let file = match FlowFile::read(path) {
            Ok(file) => file,
            Err(error) => {
                unreadable = true;
                let message = format!("cannot be read: {error}");
                reports.push(json!({"path": path, "valid": false, "error": message}));
                writeln!(err, "{}", about(path, &message))?;
                continue;
            }
        };
        let validation = file.validate(&BuiltInKinds::default(), !args.lenient);
        invalid |= !validation.valid;
        if args.json {
            let mut report = json!(validation);
            report["path"] = json!(path);
            reports.push(report);
            continue;
        }
        write_findings(&path.display(), &validation, out)?;
        if validation.valid {
            writeln!(err, "{}", about(path, "valid"))?;
        }
    }
    if args.json {
        write_json(&Value::Array(reports), out)?;
    }
    Ok(match (unreadable, invalid) {
        (true, _) => ExitCode::from(UNREADABLE),
        (_, true) => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    })
}

fn about(path: &Path, text: &str) -> String {
    one_line(&format!("{}: {text}", path.display()))
}
