//! Adapter kind `model`.
