//! Tells the compiler which Python this is built for (`Py_3_14`, `Py_GIL_DISABLED`).

fn main() {
    pyo3_build_config::use_pyo3_cfgs();
}
