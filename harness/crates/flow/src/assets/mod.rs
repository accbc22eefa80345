//! Prompt assets of a project: agents, instructions and skills in the folder `.agents-flow`.

mod files;
mod folder;
mod frontmatter;
mod manifest;
mod scan;

pub use files::{AssetEntry, AssetFiles, MAX_FILE_BYTES, MAX_FOLDER_ENTRIES, MemoryAssets};
pub use folder::FolderAssets;
pub use frontmatter::MAX_FRONTMATTER_BYTES;
pub use manifest::{
    AgentAsset, Includes, ManifestError, ManifestErrorCode, PromptAssetManifest, TextAsset,
};
pub use scan::{ASSET_FOLDER, GLOBAL_PROMPT_FILE, MAX_TOTAL_BYTES, scan};

#[cfg(test)]
#[path = "assets_tests.rs"]
mod tests;
