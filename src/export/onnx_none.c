/* onnx_none.c - replaces onnx.c in a build without ONNX; reports what to install. */
#include "export/export.h"

bool co_export_has_onnx(void)
{
    return false;
}

co_status co_export_onnx(const char *path, const co_export *export)
{
    (void)export;
    return co_fail(
        CO_E_UNSUPPORTED,
        "%s: this build has no ONNX export; install libonnx-dev, protobuf-c-compiler and "
        "libprotobuf-c-dev (Debian's names), and build again",
        path);
}
