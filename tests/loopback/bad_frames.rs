//! Whoever speaks nonsense to a server is told so in a typed error and cut off, and
//! nobody else notices.

use std::time::Duration;

use deposed::{cluster::Cluster, net::MAX_FRAME};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    task::LocalSet,
    time::timeout,
};

use super::{Loopback, PATIENCE, header};

const ACQUIRE: &str = r#"{"kind":"acquire","body":{"id":1,"lease":"mine","holder":"x#1","request":1,"ttl":300000000}}"#;
const FENCE: &str = r#"{"kind":"fence","body":{"id":1,"lease":"mine","token":1}}"#;

/// A raw connection to a server.
struct Raw(BufReader<TcpStream>);

impl Raw {
    async fn connect(loopback: &Loopback, server: &str) -> Self {
        let stream = TcpStream::connect(loopback.book[server])
            .await
            .expect("connects");
        Self(BufReader::new(stream))
    }

    async fn say(&mut self, line: &[u8]) {
        // The server may cut us off before it has read it all.
        let _ = self.0.get_mut().write_all(line).await;
        let _ = self.0.get_mut().write_all(b"\n").await;
    }

    /// The next line; empty once the server has closed the connection.
    async fn hear(&mut self) -> String {
        let mut line = String::new();
        let heard = timeout(PATIENCE, self.0.read_line(&mut line))
            .await
            .expect("an answer in time");
        // A reset is a way to close, too: bytes that were not read lie in its buffer.
        heard.map_or_else(|_| String::new(), |_| line)
    }
}

#[tokio::test]
async fn a_frame_that_cannot_be_taken_closes_its_connection_and_harms_no_other() {
    let long = vec![b'x'; 3 * MAX_FRAME];
    let past_u64 = FENCE.replace("\"token\":1", "\"token\":18446744073709551616");
    let nonsense: [(&[u8], &str); 6] = [
        (&long, "frame-too-long"),
        (b"hello", "not-json"),
        (b"\xff\xfe{}", "not-json"),
        (br#"{"kind":"steal","body":{}}"#, "unknown-kind"),
        (past_u64.as_bytes(), "bad-field"),
        (br#"{"kind":"fence","body":{"id":1}}"#, "bad-field"),
    ];
    LocalSet::new()
        .run_until(async {
            let loopback = Loopback::boot(&header()).await.expect("boots");
            for (server, sense, answer) in [
                (Cluster::STORE, ACQUIRE, "acquire-reply"),
                (Cluster::STORAGE, FENCE, "fence-reply"),
            ] {
                let mut other = Raw::connect(&loopback, server).await;
                other.say(sense.as_bytes()).await;
                assert!(other.hear().await.contains(answer));
                for (bytes, error) in nonsense {
                    let mut raw = Raw::connect(&loopback, server).await;
                    raw.say(bytes).await;
                    let told = raw.hear().await;
                    assert!(
                        told.contains(error) && told.contains("\"error\""),
                        "{error}: {told}"
                    );
                    assert_eq!(raw.hear().await, "", "{error}: the connection is closed");
                    // The same request again is answered alike, on the other connection.
                    other.say(sense.as_bytes()).await;
                    assert!(other.hear().await.contains(answer), "after {error}");
                }
            }
            assert!(loopback.panics.borrow().is_empty());
        })
        .await;
}

#[tokio::test]
async fn a_request_for_the_other_server_is_an_unknown_kind() {
    LocalSet::new()
        .run_until(async {
            let loopback = Loopback::boot(&header()).await.expect("boots");
            let mut raw = Raw::connect(&loopback, Cluster::STORE).await;
            raw.say(FENCE.as_bytes()).await;
            assert!(raw.hear().await.contains("unknown-kind"));
            assert_eq!(
                timeout(Duration::from_secs(60), raw.hear())
                    .await
                    .as_deref(),
                Ok("")
            );
        })
        .await;
}
