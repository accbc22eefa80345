//! What pages of the configured origins may read, and with whose credentials.

use axum::http::{HeaderName, HeaderValue, header};
use tower_http::cors::{AllowHeaders, AllowMethods, AllowOrigin, CorsLayer};

use crate::visitors::Visitors;

/// The headers of ours that clients in a page read.
const EXPOSED: [HeaderName; 5] = [
    header::CONTENT_LOCATION,
    header::LOCATION,
    HeaderName::from_static("x-pagination-total"),
    HeaderName::from_static("x-pagination-next"),
    crate::repeats::REPLAYED,
];

/// The layer for the origins of `visitors`; none without any, since their pages then share ours.
pub(crate) fn cors(visitors: &Visitors) -> Option<CorsLayer> {
    let known = visitors.clone();
    let origins = move |origin: &HeaderValue, _: &_| {
        origin
            .to_str()
            .is_ok_and(|origin| known.knows_origin(origin))
    };
    visitors.has_origins().then(|| {
        CorsLayer::new()
            .allow_origin(AllowOrigin::predicate(origins))
            .allow_credentials(true)
            .allow_methods(AllowMethods::mirror_request())
            .allow_headers(AllowHeaders::mirror_request())
            .expose_headers(EXPOSED)
    })
}
