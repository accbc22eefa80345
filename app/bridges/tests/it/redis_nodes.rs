//! redis_nodes
