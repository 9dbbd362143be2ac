//! Who logs in, and how the password is proven.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{
    self, SCRAM_SHA_256, SCRAM_SHA_256_PLUS, ScramSha256,
};
use postgres_protocol::message::backend::Message;
use postgres_protocol::message::frontend;

use crate::fault::Fault;

/// Who logs in to which database.
#[derive(Clone, Default)]
pub struct Login {
    /// The role.
    pub user: String,
    /// Its password, if there is one.
    pub password: Option<String>,
    /// The database; the server takes the name of the role for an empty one.
    pub database: String,
    /// Further parameters of the session: `application_name`, `search_path`, …
    pub parameters: Vec<(String, String)>,
    /// Whether the proof of the password is bound to the TLS connection.
    pub channel_binding: ChannelBinding,
}

/// Whether the proof of the password is bound to the TLS connection that it is sent over, so that nothing between client
/// and server can pass it on (RFC 5802 §6, RFC 5929 §4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChannelBinding {
    /// It is not.
    Off,
    /// If both sides can.
    #[default]
    Preferred,
    /// Otherwise the login fails.
    Required,
}

impl core::fmt::Debug for Login {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        // Not the password.
        f.debug_struct("Login")
            .field("user", &self.user)
            .field("database", &self.database)
            .finish_non_exhaustive()
    }
}

impl Login {
    pub(crate) fn write_startup(&self, output: &mut BytesMut) -> Result<(), Fault> {
        let mut parameters = Vec::from([
            ("client_encoding", "UTF8"),
            ("user", self.user.as_str()),
            // Dates and intervals of types that are asked for as text come in one form.
            ("DateStyle", "ISO"),
        ]);
        if !self.database.is_empty() {
            parameters.push(("database", &self.database));
        }
        parameters.extend(
            self.parameters
                .iter()
                .map(|(k, v)| (k.as_str(), v.as_str())),
        );
        frontend::startup_message(parameters, output)
            .map_err(|_| Fault::Authentication("a parameter of the session has a zero byte".into()))
    }
}

/// What has been proven so far.
#[derive(Default)]
pub(crate) struct Proof {
    /// The hash of the server's certificate, over TLS.
    pub(crate) server_end_point: Option<Vec<u8>>,
    is_bound: bool,
    scram: Option<Box<ScramSha256>>,
    /// The server has shown that it knows the password too.
    is_server_proven: bool,
    /// It has said that the client is who it says it is.
    pub(crate) is_done: bool,
}

impl core::fmt::Debug for Proof {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Proof")
            .field("is_done", &self.is_done)
            .finish_non_exhaustive()
    }
}

impl Proof {
    /// Takes a message of authentication and says what it asks for.
    pub(crate) fn step(
        &mut self,
        login: &Login,
        message: &Message,
        output: &mut BytesMut,
    ) -> Result<(), Fault> {
        self.refuse(login, message)?;
        match message {
            Message::AuthenticationOk => {
                self.is_done = true;
                Ok(())
            }
            Message::AuthenticationCleartextPassword => send(password(login)?, output),
            Message::AuthenticationMd5Password(body) => {
                let hash = md5_hash(login.user.as_bytes(), password(login)?, body.salt());
                send(hash.as_bytes(), output)
            }
            Message::AuthenticationSasl(body) => {
                let offers = |mechanism| {
                    body.mechanisms()
                        .any(|name| Ok(name == mechanism))
                        .unwrap_or(false)
                };
                let (mechanism, binding) =
                    self.mechanism(login, offers(SCRAM_SHA_256), offers(SCRAM_SHA_256_PLUS))?;
                let scram = ScramSha256::new(password(login)?, binding);
                let sent = frontend::sasl_initial_response(mechanism, scram.message(), output);
                self.scram = Some(Box::new(scram));
                sent.map_err(refused)
            }
            Message::AuthenticationSaslContinue(body) => {
                let scram = self.scram.as_mut().ok_or(UNEXPECTED)?;
                scram.update(body.data()).map_err(refused)?;
                frontend::sasl_response(scram.message(), output).map_err(refused)
            }
            Message::AuthenticationSaslFinal(body) => {
                let scram = self.scram.as_mut().ok_or(UNEXPECTED)?;
                scram.finish(body.data()).map_err(refused)?;
                self.is_server_proven = true;
                Ok(())
            }
            _ => Err(Fault::Authentication(
                "the server asks for Kerberos, GSSAPI or SSPI, which are not spoken here"
                    .to_owned(),
            )),
        }
    }
}

impl Proof {
    /// Refuses what would have less proven than there has to be.
    fn refuse(&self, login: &Login, message: &Message) -> Result<(), Fault> {
        match message {
            // A client that began anew would give an unbound proof, or the password itself, after the bound one.
            Message::AuthenticationCleartextPassword
            | Message::AuthenticationMd5Password(_)
            | Message::AuthenticationSasl(_)
                if self.scram.is_some() =>
            {
                Err(Fault::Authentication(
                    "the server asks for another proof of the password in the middle of one".into(),
                ))
            }
            Message::AuthenticationOk if self.scram.is_some() && !self.is_server_proven => {
                Err(Fault::Authentication(
                    "the server has not proven that it knows the password".into(),
                ))
            }
            Message::AuthenticationOk
            | Message::AuthenticationCleartextPassword
            | Message::AuthenticationMd5Password(_)
                if self.must_be_bound(login) =>
            {
                Err(unbound())
            }
            _ => Ok(()),
        }
    }

    fn must_be_bound(&self, login: &Login) -> bool {
        login.channel_binding == ChannelBinding::Required && !self.is_bound
    }

    /// The best mechanism that the server offers, and the channel binding of its first message.
    fn mechanism(
        &mut self,
        login: &Login,
        has_plain: bool,
        has_plus: bool,
    ) -> Result<(&'static str, sasl::ChannelBinding), Fault> {
        let end_point = match login.channel_binding {
            ChannelBinding::Off => None,
            _ => self.server_end_point.take(),
        };
        match end_point {
            Some(end_point) if has_plus => {
                self.is_bound = true;
                let binding = sasl::ChannelBinding::tls_server_end_point(end_point);
                Ok((SCRAM_SHA_256_PLUS, binding))
            }
            _ if self.must_be_bound(login) => Err(unbound()),
            _ if !has_plain => Err(Fault::Authentication(
                "the server offers no way of authentication that is spoken here (SCRAM-SHA-256, md5, password)"
                    .to_owned(),
            )),
            // Told to the server: one that can do it too knows then that its offer was withheld.
            Some(_) => Ok((SCRAM_SHA_256, sasl::ChannelBinding::unrequested())),
            None => Ok((SCRAM_SHA_256, sasl::ChannelBinding::unsupported())),
        }
    }
}

#[cold]
fn unbound() -> Fault {
    Fault::Authentication(
        "channel_binding=require: the server does not bind the login to the connection, which takes TLS and a password \
         kept for scram-sha-256"
            .to_owned(),
    )
}

const UNEXPECTED: Fault = Fault::Protocol("a step of SASL before its beginning");

fn password(login: &Login) -> Result<&[u8], Fault> {
    let password = login.password.as_ref().map(String::as_bytes);
    password.ok_or_else(|| {
        let user = &login.user;
        Fault::Authentication(format!(
            "the server asks for a password of {user:?}, and none is given"
        ))
    })
}

fn send(password: &[u8], output: &mut BytesMut) -> Result<(), Fault> {
    frontend::password_message(password, output)
        .map_err(|_| Fault::Authentication("the password has a zero byte".into()))
}

#[expect(clippy::needless_pass_by_value, reason = "the shape of map_err")]
fn refused(error: impl ToString) -> Fault {
    Fault::Authentication(format!("SCRAM-SHA-256: {}", error.to_string()))
}
