//! Markdown files converted from uploaded documents. A failed conversion does not affect the
//! upload.

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::join_all;

use super::name::{Names, path_of};
use super::view::UploadedFile;
use crate::artifacts::artifact_url;
use crate::documents::{ConversionError, DocumentKind, DocumentReader, mark_of};
use crate::sandbox::{FileError, ThreadFiles, VirtualPath};
use deerflow_core::ids::ThreadId;

/// A planned conversion: the document and the candidate paths of its Markdown.
#[derive(Debug)]
pub(super) struct MarkdownPlan {
    kind: DocumentKind,
    document: VirtualPath,
    candidates: Vec<VirtualPath>,
}

impl MarkdownPlan {
    /// Plans the conversion of a pending file; `None` if it is not a document, or if other files of
    /// the request use all candidate names.
    pub(super) fn of(document: &VirtualPath, names: &mut Names) -> Option<Self> {
        let (kind, mut candidates) = markdown_of(document)?;
        candidates.retain(|path| names.reserve(path));
        (!candidates.is_empty()).then(|| Self {
            kind,
            document: document.clone(),
            candidates,
        })
    }

    /// Converts the document and returns the path of the Markdown; logs the reason if there is
    /// none.
    async fn convert(
        &self,
        reader: &dyn DocumentReader,
        user: &str,
        files: &ThreadFiles,
    ) -> Option<&VirtualPath> {
        let Self {
            kind,
            document,
            candidates,
        } = self;
        let opening = files.open_read(document).map(|opened| match opened {
            Ok((file, _)) => Ok(file),
            Err(error) => Err(ConversionError::Document(error.to_string())),
        });
        let text = reader.markdown(user, *kind, opening.boxed()).await;
        let text = text
            .inspect_err(|error| tracing::warn!(%error, %document, "cannot convert a document"))
            .ok()?;
        let mark = mark_of(document.file_name());
        let content = Bytes::from(format!("{mark}\n\n{text}"));
        for path in candidates {
            let written = files
                .write_marked(path, mark.clone(), content.clone())
                .await;
            if written
                .inspect_err(
                    |error| tracing::warn!(%error, "cannot store the Markdown of a document"),
                )
                .ok()?
            {
                return Some(path);
            }
        }
        tracing::info!(%document, "document not converted: other files use its Markdown names");
        None
    }
}

/// Executes the plans concurrently and returns the path of each Markdown file.
pub(super) async fn convert<'a>(
    plans: &'a [Option<MarkdownPlan>],
    reader: &dyn DocumentReader,
    user: &str,
    files: &ThreadFiles,
) -> Vec<Option<&'a VirtualPath>> {
    let all = plans.iter().map(|plan| async move {
        match plan {
            Some(plan) => plan.convert(reader, user, files).await,
            None => None,
        }
    });
    join_all(all).await
}

/// Removes the Markdown of a document that was removed or will be replaced.
pub(super) async fn remove_markdown_of(
    files: &ThreadFiles,
    document: &VirtualPath,
) -> Result<(), FileError> {
    for path in markdown_of(document)
        .into_iter()
        .flat_map(|(_, candidates)| candidates)
    {
        files
            .remove_marked(&path, mark_of(document.file_name()))
            .await?;
    }
    Ok(())
}

fn markdown_of(document: &VirtualPath) -> Option<(DocumentKind, Vec<VirtualPath>)> {
    let (kind, names) = DocumentKind::of_file(document.file_name())?;
    Some((
        kind,
        names.iter().filter_map(|name| path_of(name)).collect(),
    ))
}

/// Adds the Markdown to the client's view of its document.
pub(super) fn set_markdown(file: &mut UploadedFile, thread: &ThreadId, markdown: &VirtualPath) {
    let path = markdown.to_string();
    file.markdown_file = Some(markdown.file_name().to_owned());
    file.markdown_path = Some(path.clone());
    file.markdown_virtual_path = Some(path);
    file.markdown_artifact_url = Some(artifact_url(thread, markdown));
}
