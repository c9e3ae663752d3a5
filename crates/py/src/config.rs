//! Connection parameters.

use crate::errors::{ConnectError, other};
use pgdyno_postgres::conn::ChannelBinding;
use pgdyno_postgres::tls::{TlsSettings, default_root_cert};
use pgdyno_postgres::{Config, Endpoint, SslMode};
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::net::ToSocketAddrs;
use std::path::PathBuf;

/// Resolved connection parameters: libpq's words, every default filled in.
#[pyclass(frozen, module = "pgdyno._core")]
pub struct ConnConfig {
    pub inner: Config,
}

#[pymethods]
impl ConnConfig {
    /// `members`: further addresses and ports of the same cluster, tried in turn after the first; `read_write`: those
    /// whose sessions are read-only are passed over. `tells_kinds`: the server is a worker of pgdyno's, which is told the
    /// kinds of values.
    #[new]
    #[pyo3(signature = (*, host, port, user, dbname, password=None, hostaddr=None, sslmode="prefer", sslrootcert=None,
                        sslcert=None, sslkey=None, channel_binding="prefer", options=None,
                        application_name="pgdyno", settings=None, read_write=false, members=None,
                        tells_kinds=false))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        host: String,
        port: u16,
        user: String,
        dbname: String,
        password: Option<String>,
        hostaddr: Option<String>,
        sslmode: &str,
        sslrootcert: Option<PathBuf>,
        sslcert: Option<PathBuf>,
        sslkey: Option<PathBuf>,
        channel_binding: &str,
        options: Option<String>,
        application_name: &str,
        settings: Option<BTreeMap<String, String>>,
        read_write: bool,
        members: Option<Vec<(String, u16)>>,
        tells_kinds: bool,
    ) -> PyResult<ConnConfig> {
        let ssl_mode: SslMode = sslmode.parse().map_err(other)?;
        let channel_binding: ChannelBinding = channel_binding.parse().map_err(other)?;
        let endpoint = if host.starts_with('/') || host.starts_with('@') {
            Endpoint::Unix(PathBuf::from(format!("{host}/.s.PGSQL.{port}")))
        } else {
            let mut targets = vec![(hostaddr.as_deref().unwrap_or(&host).to_owned(), port)];
            targets.extend(members.unwrap_or_default());
            let found = py.detach(move || {
                let resolved: std::io::Result<Vec<_>> = targets.iter().map(|t| t.to_socket_addrs()).collect();
                resolved.map(|all| all.into_iter().flatten().collect::<Vec<_>>())
            });
            let addresses = found.map_err(|e| {
                ConnectError::new_err(format!("cannot connect to {host} port {port}: the name does not resolve: {e}"))
            })?;
            Endpoint::Tcp { host, addresses }
        };
        let over_tls = matches!(endpoint, Endpoint::Tcp { .. }) && ssl_mode != SslMode::Disable;
        let tls = if over_tls {
            let home = std::env::home_dir();
            let root = sslrootcert.or_else(|| default_root_cert(home));
            let client = sslcert.as_deref().zip(sslkey.as_deref());
            Some(
                TlsSettings::load(ssl_mode, root.as_deref(), client)
                    .map_err(|e| ConnectError::new_err(e.to_string()))?,
            )
        } else {
            None
        };
        let mut parameters = vec![("application_name".to_owned(), application_name.to_owned())];
        parameters.extend(settings.unwrap_or_default());
        parameters.extend(options.filter(|o| !o.is_empty()).map(|o| ("options".to_owned(), o)));
        let inner = Config {
            user,
            database: dbname,
            password,
            parameters,
            ssl_mode,
            channel_binding,
            endpoint,
            read_write,
            tells_kinds,
            tls,
        };
        Ok(ConnConfig { inner })
    }

    /// Returns a description of the server's address.
    #[getter]
    fn endpoint(&self) -> String {
        self.inner.endpoint.to_string()
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.inner)
    }
}

/// Resolved connection parameters of a MySQL or MariaDB server. A `host` that begins with a slash is a socket's path.
#[pyclass(frozen, module = "pgdyno._core")]
pub struct MySqlConfig {
    pub inner: pgdyno_mysql::Config,
}

#[pymethods]
impl MySqlConfig {
    #[new]
    #[pyo3(signature = (*, host, port, user, database="", password=None, sslmode="prefer", sslrootcert=None,
                        sslcert=None, sslkey=None, program="pgdyno", settings=None, ask_public_key=false,
                        clear_password=false))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        host: String,
        port: u16,
        user: String,
        database: &str,
        password: Option<String>,
        sslmode: &str,
        sslrootcert: Option<PathBuf>,
        sslcert: Option<PathBuf>,
        sslkey: Option<PathBuf>,
        program: &str,
        settings: Option<BTreeMap<String, String>>,
        ask_public_key: bool,
        clear_password: bool,
    ) -> PyResult<MySqlConfig> {
        let ssl_mode: SslMode = sslmode.parse().map_err(other)?;
        let endpoint = if host.starts_with('/') {
            Endpoint::Unix(PathBuf::from(host))
        } else {
            let name = host.clone();
            let found = py.detach(move || (name.as_str(), port).to_socket_addrs().map(Iterator::collect));
            let addresses = found.map_err(|e: std::io::Error| {
                ConnectError::new_err(format!("cannot connect to {host} port {port}: the name does not resolve: {e}"))
            })?;
            Endpoint::Tcp { host, addresses }
        };
        let over_tls = matches!(endpoint, Endpoint::Tcp { .. }) && ssl_mode != SslMode::Disable;
        let client = sslcert.as_deref().zip(sslkey.as_deref());
        let load = || TlsSettings::load(ssl_mode, sslrootcert.as_deref(), client);
        let tls = over_tls.then(load).transpose().map_err(|e| ConnectError::new_err(e.to_string()))?;
        let inner = pgdyno_mysql::Config {
            password,
            settings: settings.unwrap_or_default().into_iter().collect(),
            program: program.into(),
            ssl_mode,
            tls,
            ask_public_key,
            clear_password,
            ..pgdyno_mysql::Config::plain(endpoint, &user, database)
        };
        Ok(MySqlConfig { inner })
    }

    /// Returns a description of the server's address.
    #[getter]
    fn endpoint(&self) -> String {
        self.inner.endpoint.to_string()
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.inner)
    }
}
