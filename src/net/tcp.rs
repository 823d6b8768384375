//! The network of a node in service: real TCP, names resolved by an address book.

use std::{cell::RefCell, collections::BTreeMap, io, net::SocketAddr, rc::Rc};

use deposed_checkers::history::Name;
use tokio::net::{TcpListener, TcpStream};

use super::{Connection, Listener, LocalFuture, Net};

/// Who listens where.
pub type AddressBook = BTreeMap<Name, SocketAddr>;

/// A node's way to the real network.
pub struct TcpNet {
    me: Name,
    listener: RefCell<Option<TcpListener>>,
    book: Rc<AddressBook>,
}

impl TcpNet {
    /// For a node that only connects.
    pub fn new(me: impl Into<Name>, book: Rc<AddressBook>) -> Self {
        Self {
            me: me.into(),
            listener: RefCell::new(None),
            book,
        }
    }

    /// For a node that listens. The listener is bound beforehand, so that port 0
    /// can be used and its address put into the book.
    pub fn listening(me: impl Into<Name>, listener: TcpListener, book: Rc<AddressBook>) -> Self {
        Self {
            me: me.into(),
            listener: RefCell::new(Some(listener)),
            book,
        }
    }
}

impl Net for TcpNet {
    fn listen(&self) -> LocalFuture<'static, io::Result<Box<dyn Listener>>> {
        let (me, bound) = (self.me.clone(), self.listener.borrow_mut().take());
        let address = self.book.get(&self.me).copied();
        Box::pin(async move {
            let listener = match (bound, address) {
                (Some(listener), _) => listener,
                (None, Some(address)) => TcpListener::bind(address).await?,
                (None, None) => {
                    let what = format!("the address book has no entry for '{me}' to listen at");
                    return Err(io::Error::new(io::ErrorKind::NotFound, what));
                }
            };
            Ok(Box::new(RealListener { me, listener }) as Box<dyn Listener>)
        })
    }

    fn connect(&self, peer: &Name) -> LocalFuture<'static, io::Result<Connection>> {
        let (me, peer, address) = (self.me.clone(), peer.clone(), self.book.get(peer).copied());
        Box::pin(async move {
            let Some(address) = address else {
                let what = format!("the address book has no entry for '{peer}'");
                return Err(io::Error::new(io::ErrorKind::NotFound, what));
            };
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            Ok(Connection::new(Box::new(stream), me, peer, None))
        })
    }
}

struct RealListener {
    me: Name,
    listener: TcpListener,
}

impl Listener for RealListener {
    fn accept(&mut self) -> LocalFuture<'_, io::Result<Connection>> {
        Box::pin(async {
            let (stream, address) = self.listener.accept().await?;
            stream.set_nodelay(true)?;
            let peer = address.to_string().into();
            Ok(Connection::new(
                Box::new(stream),
                self.me.clone(),
                peer,
                None,
            ))
        })
    }
}
