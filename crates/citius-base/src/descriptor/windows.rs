//! Windows only: numbers are those of the C library that Python uses, which knows the handles behind them. Python's `msvcrt` asks it:
//! this extension may be linked with another one.

use std::fs::File;
use std::io::{Error, Result};
use std::os::windows::io::{BorrowedHandle, IntoRawHandle, RawHandle};

use citius_reactor::Socket;
use pyo3::prelude::*;

use crate::descriptor::Fd;

/// A file of our own for what the number stands for.
pub fn duplicate(fd: Fd) -> Result<File> {
    let handle = Python::attach(|py| -> PyResult<isize> {
        py.import("msvcrt")?
            .call_method1("get_osfhandle", (fd,))?
            .extract()
    });
    let handle = handle.map_err(|error| Error::other(error.to_string()))?;
    // SAFETY: the C library has this handle open under `fd`; it is only borrowed for the call that duplicates it.
    let borrowed = unsafe { BorrowedHandle::borrow_raw(handle as RawHandle) };
    Ok(borrowed.try_clone_to_owned()?.into())
}

/// There are none.
pub fn socket_of(_fd: Fd) -> Result<Socket> {
    Err(super::no_sockets())
}

/// A number of its own for an open file. Python closes it.
pub fn number_of(file: &File) -> Result<Fd> {
    let handle = file.try_clone()?.into_raw_handle() as isize;
    let number = Python::attach(|py| -> PyResult<Fd> {
        py.import("msvcrt")?
            .call_method1("open_osfhandle", (handle, 0))?
            .extract()
    });
    number.map_err(|error| Error::other(error.to_string()))
}
