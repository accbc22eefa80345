//! Agents of the current configuration, and the files of custom agents.

pub(crate) mod configured;
pub(crate) mod custom_files;
pub(crate) mod flow_rules;
mod guardrails;
mod role_tools;
mod web_tools;
