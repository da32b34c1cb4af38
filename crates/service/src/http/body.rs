//! Reading a body: within its size, its time, and the memory for long bodies under way.
//!
//! `http-body-util` holds the size. `tower-http`'s layer for it looks at the head before it is known who asks, and costs every request
//! two boxes; its time for a body starts anew with every piece, so a slow sender could go on for ever. So the time for the whole is kept
//! here, and the room, which no library has.

use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tokio::sync::SemaphorePermit;
use tokio::time::timeout;

use super::Service;
use super::error::ApiError;

/// A body above this has to wait for room, and is evaluated away from the threads that answer.
pub const LONG: usize = 32 << 10;
/// How long a body may take.
const TIME: Duration = Duration::from_secs(15);

/// A body, and the room it takes.
pub struct Received<'a> {
    /// The body.
    pub bytes: Bytes,
    _room: Option<SemaphorePermit<'a>>,
}

/// Reads a body.
pub async fn read(service: &Service, body: Body) -> Result<Received<'_>, ApiError> {
    let limit = service.max_body;
    if body.size_hint().lower() > limit as u64 {
        return Err(ApiError::TooLarge(limit));
    }
    // A body of unknown length may become as long as any.
    let most = body.size_hint().upper().and_then(|most| usize::try_from(most).ok()).unwrap_or(limit).min(limit);
    let room = if most > LONG {
        let kibibytes = u32::try_from(most / 1024).unwrap_or(u32::MAX).min(service.room_kib);
        let room = service.room.acquire_many(kibibytes).await;
        Some(room.map_err(|_closed| ApiError::Busy)?)
    } else {
        None
    };
    match timeout(TIME, Limited::new(body, limit).collect()).await {
        Err(_slow) => Err(ApiError::SlowBody),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(ApiError::TooLarge(limit)),
        Ok(Err(_cut)) => Err(ApiError::Malformed("the body is cut off".to_owned())),
        Ok(Ok(body)) => Ok(Received { bytes: body.to_bytes(), _room: room }),
    }
}
