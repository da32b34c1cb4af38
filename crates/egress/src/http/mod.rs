//! HTTP/1.1 read strictly and written anew: nothing of what a client sent is passed on that was not understood.

pub mod body;
pub mod head;
pub mod request;
pub mod response;
pub mod upstream;
pub mod wire;
