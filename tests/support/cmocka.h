/* cmocka with what it wants included before it. */
#ifndef TOWERSCOPE_TESTS_SUPPORT_CMOCKA_H
#define TOWERSCOPE_TESTS_SUPPORT_CMOCKA_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
