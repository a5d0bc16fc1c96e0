/* What a terminal sends beside keys is no key: reports of a mouse, answers, pasted text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "tui/escape.h"

/* What is left of bytes that come at once: typed ones as they are, <ESC> for that key, pasted ones in braces.
 */
static void read_bytes(struct escape *escape, const char *bytes, size_t count, double now, char out[400]) {
    size_t length = 0;
    for (size_t i = 0; i < count; i++) {
        enum escape_byte kind = escape_take(escape, (unsigned char)bytes[i], now);
        if (kind == ESCAPE_AFTER)
            length += (size_t)sprintf(out + length, "<ESC>");
        if (kind == ESCAPE_PASTED)
            length += (size_t)sprintf(out + length, "{%c}", bytes[i]);
        else if (kind != ESCAPE_TAKEN && !(kind == ESCAPE_AFTER && bytes[i] == 27))
            out[length++] = bytes[i];
    }
    if (escape_rest(escape))
        length += (size_t)sprintf(out + length, "<ESC>");
    out[length] = 0;
}

static void expect(const char *bytes, const char *wanted) {
    struct escape escape = {0};
    char out[400];
    read_bytes(&escape, bytes, strlen(bytes), 5, out);
    assert_string_equal(out, wanted);
}

static void keys_are_keys(void **state) {
    (void)state;
    expect("q", "q");
    expect("\033", "<ESC>");
    expect("\033q", "<ESC>q");
    expect("\033\033", "<ESC><ESC>");
    expect("\033\033q", "<ESC><ESC>q");
    expect("\003\014 +\xc3\xa4", "\003\014 +\xc3\xa4");
}

static void reports_are_none(void **state) {
    (void)state;
    expect("a\033[<0;15;3M\033[<0;15;3mb", "ab");   /* a mouse */
    expect("a\033[M +#b\033[M#q ", "ab");           /* in the old way: any bytes, a q among them */
    expect("\033[32;10;10Mq", "q");                 /* in urxvt's way */
    expect("\033[I\033[Oq", "q");                   /* focus */
    expect("\033[?62;1;2;4c\033[>41;354;0cq", "q"); /* what it is */
    expect("\033[12;40R\033[?2026;2$y\033[0nq", "q");
    expect("\033]11;rgb:1010/2020/3030\007q", "q");
    expect("\033]11;rgb:1010/2020/3030\033\\q", "q");
    expect("\033P1$r0m\033\\q", "q");
    expect("\033[1;5A\033O5Pq", "q"); /* keys that terminfo does not know */
    expect("\033[[Aq", "q");
}

static void pasted_text_is_no_command(void **state) {
    (void)state;
    expect(" \033[200~Q y\033[201~q", " {Q}{ }{y}q");
    expect("\033[200~a\033b\033[Ac\033[201~q", "{a}{b}{c}q"); /* sequences in it */
    expect("\033[200~\r\n\033[201~q", "{\r}{\n}q");
    expect("\033[201~q", "q");
}

/* Cut in two by the line: the second part does not become keys. */
static void parts(void **state) {
    (void)state;
    struct escape escape = {0};
    char out[400];
    read_bytes(&escape, "\033", 1, 5, out);
    assert_string_equal(out, "<ESC>");
    read_bytes(&escape, "[<0;1", 5, 5.2, out);
    assert_string_equal(out, "");
    read_bytes(&escape, "5;3Mq", 5, 5.4, out);
    assert_string_equal(out, "q");
}

/* Whatever came, when nothing follows, a key is a key again. */
static void nothing_lasts(void **state) {
    (void)state;
    static const char likely[] = "\033\033\033[]PO200~1M;<?q\007\\ \r";
    struct escape escape = {0};
    char out[400];
    srand(3);
    for (int turn = 0; turn < 2000; turn++) {
        char bytes[24];
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = rand() % 8 ? likely[(size_t)rand() % (sizeof likely - 1)] : (char)rand();
        read_bytes(&escape, bytes, sizeof bytes, turn * 100, out);
        read_bytes(&escape, "q", 1, turn * 100 + 50, out);
        assert_string_equal(out, "q");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_keys),
        cmocka_unit_test(reports_are_none),
        cmocka_unit_test(pasted_text_is_no_command),
        cmocka_unit_test(parts),
        cmocka_unit_test(nothing_lasts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
