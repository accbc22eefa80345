//! Operations with a JSON response.

use crate::openapi::{Operation, delete, get, patch, post, put};
use crate::responses::documented::DeerFlowAnswer;

/// A read operation with a JSON response.
pub(super) fn read(
    tag: &'static str,
    path: &'static str,
    id: &'static str,
    summary: &'static str,
) -> Operation {
    with_json_response(get(path, id, summary), tag)
}

/// A `POST` operation with a JSON response.
pub(super) fn send(
    tag: &'static str,
    path: &'static str,
    id: &'static str,
    summary: &'static str,
) -> Operation {
    with_json_response(post(path, id, summary), tag)
}

/// A replacing operation with a JSON response.
pub(super) fn write(
    tag: &'static str,
    path: &'static str,
    id: &'static str,
    summary: &'static str,
) -> Operation {
    with_json_response(put(path, id, summary), tag)
}

/// A partial update with a JSON response.
pub(super) fn change(
    tag: &'static str,
    path: &'static str,
    id: &'static str,
    summary: &'static str,
) -> Operation {
    with_json_response(patch(path, id, summary), tag)
}

/// A removing operation with a JSON response.
pub(super) fn remove(
    tag: &'static str,
    path: &'static str,
    id: &'static str,
    summary: &'static str,
) -> Operation {
    with_json_response(delete(path, id, summary), tag)
}

fn with_json_response(operation: Operation, tag: &'static str) -> Operation {
    operation
        .tag(tag)
        .names()
        .returns::<DeerFlowAnswer>("The result.")
}
