/* What Rust's standard library asks Windows for since version 10, and Wine 8 does not have: random bytes by this name. */
#include <windows.h>

BOOLEAN NTAPI SystemFunction036(PVOID, ULONG); /* RtlGenRandom */

enum { AT_ONCE = 1 << 16 };

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T size)
{
    for (; size > AT_ONCE; data += AT_ONCE, size -= AT_ONCE)
        if (!SystemFunction036(data, AT_ONCE))
            return FALSE;
    return SystemFunction036(data, (ULONG)size);
}
