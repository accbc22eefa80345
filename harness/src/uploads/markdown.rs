//! The Markdown beside documents that were uploaded. Whatever goes wrong with it, the upload stands.

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::join_all;

use super::name::{Names, place_of};
use super::shown::UploadedFile;
use crate::artifacts::artifact_url;
use crate::documents::{DocumentKind, DocumentReader, MADE, Unreadable};
use crate::ids::ThreadId;
use crate::sandbox::{FileError, ThreadFiles, VirtualPath};

/// A document, and where its Markdown shall be.
#[derive(Debug)]
pub(super) struct Plan {
    kind: DocumentKind,
    document: VirtualPath,
    markdown: VirtualPath,
}

impl Plan {
    /// What is to be done with a file that is about to appear: nothing if it is no document, or if another file of the request has
    /// the name of its Markdown.
    pub(super) fn of(document: &VirtualPath, names: &mut Names) -> Option<Self> {
        let (kind, markdown) = markdown_of(document)?;
        if !names.take(&markdown) {
            tracing::info!(%document, %markdown, "a document is not converted: another file has that name");
            return None;
        }
        Some(Self { kind, document: document.clone(), markdown })
    }

    /// Does it, and says where the Markdown is; the log says why there is none.
    async fn carry_out(&self, reader: &dyn DocumentReader, user: &str, files: &ThreadFiles) -> Option<&VirtualPath> {
        let Self { kind, document, markdown } = self;
        let own = || tracing::info!(%document, %markdown, "a document has no text: a file of the user's own has its name");
        // What was made before is gone. The look before the writing counts; this one saves the work.
        if files.exists(markdown).await.unwrap_or(true) {
            own();
            return None;
        }
        let opening = files.open_read(document).map(|opened| match opened {
            Ok((file, _)) => Ok(file),
            Err(error) => Err(Unreadable::Document(error.to_string())),
        });
        let text = reader.markdown(user, *kind, opening.boxed()).await;
        let text = text.inspect_err(|error| tracing::warn!(%error, %document, "a document cannot be converted")).ok()?;
        let written = files.write_marked(markdown, MADE, Bytes::from(format!("{MADE}\n\n{text}"))).await;
        let written = written.inspect_err(|error| tracing::warn!(%error, "the text of a document cannot be kept")).ok()?;
        if !written {
            own();
        }
        written.then_some(markdown)
    }
}

/// Carries plans out side by side, and says where each one's Markdown is.
pub(super) async fn carry_out<'a>(
    plans: &'a [Option<Plan>],
    reader: &dyn DocumentReader,
    user: &str,
    files: &ThreadFiles,
) -> Vec<Option<&'a VirtualPath>> {
    let all = plans.iter().map(|plan| async move {
        match plan {
            Some(plan) => plan.carry_out(reader, user, files).await,
            None => None,
        }
    });
    join_all(all).await
}

/// Removes the text that was made of a document which is gone, or is about to be another.
pub(super) async fn remove_of(files: &ThreadFiles, document: &VirtualPath) -> Result<(), FileError> {
    if let Some((_, markdown)) = markdown_of(document) {
        files.remove_marked(&markdown, MADE).await?;
    }
    Ok(())
}

fn markdown_of(document: &VirtualPath) -> Option<(DocumentKind, VirtualPath)> {
    let (kind, name) = DocumentKind::of_file(document.file_name())?;
    Some((kind, place_of(&name)?))
}

/// Tells of the Markdown in what clients see of its document.
pub(super) fn show(file: &mut UploadedFile, thread: &ThreadId, markdown: &VirtualPath) {
    let path = markdown.to_string();
    file.markdown_file = Some(markdown.file_name().to_owned());
    file.markdown_path = Some(path.clone());
    file.markdown_virtual_path = Some(path);
    file.markdown_artifact_url = Some(artifact_url(thread, markdown));
}
