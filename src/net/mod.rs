//! The network seam: connections that carry JSON-line frames, over real TCP
//! ([`tcp`]) or turmoil's simulated network ([`sim`]).
//!
//! A frame is any JSON object with a `kind`, so a user's own system brings its own
//! frames. A frame that is too long, not UTF-8, not JSON, of an unknown kind or
//! with a field that does not fit (a token past u64) is a typed [`FrameError`];
//! whoever gets one closes that connection and harms no other.

pub mod sim;
pub mod tcp;

use std::{
    borrow::Cow, collections::BTreeMap, future::Future, io, pin::Pin, rc::Rc, time::Duration,
};

use deposed_checkers::history::Name;
use futures_util::{SinkExt, StreamExt};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::Instant,
};
use tokio_util::codec::{Framed, LinesCodec, LinesCodecError};

/// The longest frame, in bytes, that either end accepts.
pub const MAX_FRAME: usize = 64 * 1024;

/// A future of this thread.
pub type LocalFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// A byte stream: a TCP stream, real or simulated.
pub trait ByteStream: AsyncRead + AsyncWrite + Unpin {}
impl<T: AsyncRead + AsyncWrite + Unpin> ByteStream for T {}

/// A node's way to the network.
pub trait Net {
    /// Listens at this node's own address.
    ///
    /// # Errors
    /// When the address is taken.
    fn listen(&self) -> LocalFuture<'static, io::Result<Box<dyn Listener>>>;

    /// Connects to a node by name.
    ///
    /// # Errors
    /// When the name is unknown or the connection is refused: surely nothing was sent.
    fn connect(&self, peer: &Name) -> LocalFuture<'static, io::Result<Connection>>;
}

/// Accepts connections.
pub trait Listener {
    /// The next connection.
    ///
    /// # Errors
    /// When the listener itself is broken.
    fn accept(&mut self) -> LocalFuture<'_, io::Result<Connection>>;
}

/// What a message rule does to one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meddling {
    /// The frame is gone.
    Lose,
    /// The frame is handed out this much later.
    Delay(Duration),
    /// The frame is handed out, and once more this much later.
    Duplicate(Duration),
}

/// Message rules, asked at the receiving end so that a frame outlives its sender.
pub trait Meddler {
    /// Whether any rule is armed: when none is, frames are not even looked at.
    fn armed(&self) -> bool;
    /// What happens to a frame of this kind.
    fn meddle(&self, from: &Name, to: &Name, kind: &str) -> Option<Meddling>;
}

/// A frame that cannot be taken. The connection it came on is of no further use.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// More than [`MAX_FRAME`] bytes without an end of line.
    #[error("a frame is longer than {MAX_FRAME} bytes")]
    TooLong,
    /// Not UTF-8, or not a JSON object with a `kind`.
    #[error("a frame is not JSON: {0}")]
    NotJson(String),
    /// A `kind` that this end does not know.
    #[error("a frame is of the unknown kind '{0}'")]
    UnknownKind(String),
    /// A known kind with a field that is missing or does not fit.
    #[error("a frame of kind '{kind}' does not fit: {reason}")]
    BadField {
        /// The frame's kind.
        kind: String,
        /// What does not fit.
        reason: String,
    },
    /// The connection broke.
    #[error("the connection broke: {0}")]
    Io(#[from] io::Error),
}

impl FrameError {
    /// The error's name in an `error` frame: `frame-too-long`, `not-json`, …
    pub fn kind(&self) -> &'static str {
        match self {
            FrameError::TooLong => "frame-too-long",
            FrameError::NotJson(_) => "not-json",
            FrameError::UnknownKind(_) => "unknown-kind",
            FrameError::BadField { .. } => "bad-field",
            FrameError::Io(_) => "connection-broken",
        }
    }
}

/// One connection, frame by frame.
pub struct Connection {
    io: Framed<Box<dyn ByteStream>, LinesCodec>,
    me: Name,
    peer: Name,
    meddler: Option<Rc<dyn Meddler>>,
    /// Frames held back by a rule, by when they are due and the order of arrival.
    held: BTreeMap<(Instant, u64), String>,
    arrivals: u64,
    ended: bool,
}

impl Connection {
    /// Frames over a byte stream between `me` and `peer`.
    pub fn new(
        stream: Box<dyn ByteStream>,
        me: Name,
        peer: Name,
        meddler: Option<Rc<dyn Meddler>>,
    ) -> Self {
        let io = Framed::new(stream, LinesCodec::new_with_max_length(MAX_FRAME));
        Self {
            io,
            me,
            peer,
            meddler,
            held: BTreeMap::new(),
            arrivals: 0,
            ended: false,
        }
    }

    /// The other end's name (its address, where names are not known).
    pub fn peer(&self) -> &Name {
        &self.peer
    }

    /// Sends one frame.
    ///
    /// # Errors
    /// When the connection is broken; part of the frame may have left.
    pub async fn send<T: Serialize>(&mut self, frame: &T) -> Result<(), FrameError> {
        let line = serde_json::to_string(frame).map_err(io::Error::other)?;
        self.io.send(line).await.map_err(codec_error)
    }

    /// The next frame; `None` once the other end has closed and every frame held
    /// back by a rule was handed out. Cancel-safe.
    ///
    /// # Errors
    /// A frame that cannot be taken, or a broken connection.
    pub async fn receive<T: DeserializeOwned>(&mut self) -> Result<Option<T>, FrameError> {
        self.next_line().await?.map(|line| parse(&line)).transpose()
    }

    async fn next_line(&mut self) -> Result<Option<String>, FrameError> {
        loop {
            let due = self.held.keys().next().copied();
            if self.ended && due.is_none() {
                return Ok(None);
            }
            let held_is_due = async {
                match due {
                    Some((at, _)) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = held_is_due => {
                    if let Some((_, line)) = self.held.pop_first() {
                        return Ok(Some(line));
                    }
                }
                line = self.io.next(), if !self.ended => match line {
                    None => self.ended = true,
                    // A broken stream ends here, but what was held back had arrived.
                    Some(Err(_)) if !self.held.is_empty() => self.ended = true,
                    Some(Err(error)) => return Err(codec_error(error)),
                    Some(Ok(line)) => {
                        if let Some(line) = self.admit(line) {
                            return Ok(Some(line));
                        }
                    }
                },
            }
        }
    }

    /// Applies the message rules to a frame that has arrived.
    fn admit(&mut self, line: String) -> Option<String> {
        let meddling = match &self.meddler {
            Some(meddler) if meddler.armed() => {
                let kind = match kind_in_front(&line) {
                    Some(kind) => Cow::Borrowed(kind),
                    None => Cow::Owned(kind_of(&line).unwrap_or_default()),
                };
                meddler.meddle(&self.peer, &self.me, &kind)
            }
            _ => None,
        };
        match meddling {
            None => Some(line),
            Some(Meddling::Lose) => None,
            Some(Meddling::Delay(by)) => {
                self.hold(by, line);
                None
            }
            Some(Meddling::Duplicate(by)) => {
                self.hold(by, line.clone());
                Some(line)
            }
        }
    }

    fn hold(&mut self, by: Duration, line: String) {
        self.arrivals += 1;
        self.held.insert((Instant::now() + by, self.arrivals), line);
    }
}

fn parse<T: DeserializeOwned>(line: &str) -> Result<T, FrameError> {
    serde_json::from_str(line).map_err(|error| {
        let Some(kind) = kind_of(line) else {
            return FrameError::NotJson(error.to_string());
        };
        let reason = error.to_string();
        if reason.starts_with("unknown variant") {
            FrameError::UnknownKind(kind)
        } else {
            FrameError::BadField { kind, reason }
        }
    })
}

/// The kind of a frame that begins with it, as all of ours do: rules look at every frame,
/// and need not read it whole.
fn kind_in_front(line: &str) -> Option<&str> {
    let (kind, _) = line.strip_prefix("{\"kind\":\"")?.split_once('"')?;
    (!kind.contains('\\')).then_some(kind)
}

fn kind_of(line: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Tagged {
        kind: String,
    }
    serde_json::from_str::<Tagged>(line)
        .ok()
        .map(|tagged| tagged.kind)
}

fn codec_error(error: LinesCodecError) -> FrameError {
    match error {
        LinesCodecError::MaxLineLengthExceeded => FrameError::TooLong,
        LinesCodecError::Io(error) if error.kind() == io::ErrorKind::InvalidData => {
            FrameError::NotJson(error.to_string())
        }
        LinesCodecError::Io(error) => FrameError::Io(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(tag = "kind", rename_all = "kebab-case")]
    enum Frame {
        Renew { token: u64 },
    }

    /// Feeds raw bytes to a connection and takes what comes out of it.
    async fn receive(bytes: &[u8]) -> Result<Option<Frame>, FrameError> {
        let stream = Box::new(std::io::Cursor::new(bytes.to_vec()));
        Connection::new(stream, "me".into(), "peer".into(), None)
            .receive()
            .await
    }

    #[tokio::test]
    async fn a_frame_that_cannot_be_taken_says_why() {
        let renew = receive(b"{\"kind\":\"renew\",\"token\":18446744073709551615}\n").await;
        assert_eq!(renew.expect("fits"), Some(Frame::Renew { token: u64::MAX }));
        let long = vec![b'x'; MAX_FRAME + 2];
        for (bytes, kind) in [
            (
                &b"{\"kind\":\"renew\",\"token\":18446744073709551616}\n"[..],
                "bad-field",
            ),
            (b"{\"kind\":\"renew\",\"token\":-1}\n", "bad-field"),
            (b"{\"kind\":\"renew\"}\n", "bad-field"),
            (b"{\"kind\":\"steal\"}\n", "unknown-kind"),
            (b"{\"token\":1}\n", "not-json"),
            (b"hello\n", "not-json"),
            (b"\xff\xfe\n", "not-json"),
            (&long, "frame-too-long"),
        ] {
            let error = receive(bytes).await.expect_err("must be refused");
            assert_eq!(error.kind(), kind, "{error}");
        }
    }

    #[test]
    fn a_kind_in_front_is_the_kind_that_is_read() {
        for (line, in_front) in [
            (r#"{"kind":"renew","token":1}"#, Some("renew")),
            (r#"{"token":1,"kind":"renew"}"#, None),
            (r#"{"kind": "renew"}"#, None),
            (r#"{"kind":"re\u006eew"}"#, None),
        ] {
            assert_eq!(kind_in_front(line), in_front, "{line}");
            assert_eq!(kind_of(line).as_deref(), Some("renew"), "{line}");
        }
    }

    #[tokio::test]
    async fn the_end_of_the_stream_is_not_an_error() {
        assert_eq!(receive(b"").await.expect("ends"), None);
    }
}
