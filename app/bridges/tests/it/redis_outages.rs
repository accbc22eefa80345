//! redis_outages
