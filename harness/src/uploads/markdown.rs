//! The Markdown beside documents that were uploaded. Whatever goes wrong with it, the upload stands.

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::join_all;

use super::name::{Names, place_of};
use super::shown::UploadedFile;
use crate::artifacts::artifact_url;
use crate::documents::{DocumentKind, DocumentReader, Unreadable, mark_of};
use crate::ids::ThreadId;
use crate::sandbox::{FileError, ThreadFiles, VirtualPath};

/// A document, and where its Markdown may be.
#[derive(Debug)]
pub(super) struct Plan {
    kind: DocumentKind,
    document: VirtualPath,
    places: Vec<VirtualPath>,
}

impl Plan {
    /// What is to be done with a file that is about to appear: nothing if it is no document, or if other files of the request have
    /// the names of its Markdown.
    pub(super) fn of(document: &VirtualPath, names: &mut Names) -> Option<Self> {
        let (kind, mut places) = markdown_of(document)?;
        places.retain(|place| names.take(place));
        (!places.is_empty()).then(|| Self {
            kind,
            document: document.clone(),
            places,
        })
    }

    /// Does it, and says where the Markdown is; the log says why there is none.
    async fn carry_out(
        &self,
        reader: &dyn DocumentReader,
        user: &str,
        files: &ThreadFiles,
    ) -> Option<&VirtualPath> {
        let Self {
            kind,
            document,
            places,
        } = self;
        let opening = files.open_read(document).map(|opened| match opened {
            Ok((file, _)) => Ok(file),
            Err(error) => Err(Unreadable::Document(error.to_string())),
        });
        let text = reader.markdown(user, *kind, opening.boxed()).await;
        let text = text
            .inspect_err(
                |error| tracing::warn!(%error, %document, "a document cannot be converted"),
            )
            .ok()?;
        let mark = mark_of(document.file_name());
        let content = Bytes::from(format!("{mark}\n\n{text}"));
        for place in places {
            let written = files
                .write_marked(place, mark.clone(), content.clone())
                .await;
            if written
                .inspect_err(
                    |error| tracing::warn!(%error, "the text of a document cannot be kept"),
                )
                .ok()?
            {
                return Some(place);
            }
        }
        tracing::info!(%document, "a document has no text: other files have its names");
        None
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
pub(super) async fn remove_of(
    files: &ThreadFiles,
    document: &VirtualPath,
) -> Result<(), FileError> {
    for place in markdown_of(document)
        .into_iter()
        .flat_map(|(_, places)| places)
    {
        files
            .remove_marked(&place, mark_of(document.file_name()))
            .await?;
    }
    Ok(())
}

fn markdown_of(document: &VirtualPath) -> Option<(DocumentKind, Vec<VirtualPath>)> {
    let (kind, names) = DocumentKind::of_file(document.file_name())?;
    Some((
        kind,
        names.iter().filter_map(|name| place_of(name)).collect(),
    ))
}

/// Tells of the Markdown in what clients see of its document.
pub(super) fn show(file: &mut UploadedFile, thread: &ThreadId, markdown: &VirtualPath) {
    let path = markdown.to_string();
    file.markdown_file = Some(markdown.file_name().to_owned());
    file.markdown_path = Some(path.clone());
    file.markdown_virtual_path = Some(path);
    file.markdown_artifact_url = Some(artifact_url(thread, markdown));
}
