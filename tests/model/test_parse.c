/* Model files: what is inferred from the good ones, and the sentence for every kind of bad one. */
#include "engine/base/inifile.h"
#include "engine/base/text.h"
#include "engine/model/model.h"
#include "tests/support/cmocka.h"
#include "tests/support/locale.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct model_ends COLOUR = {32, 32, 3, 10};

static struct model *read_builtin(const char *name, struct model_ends ends) {
    struct model *model;
    if (model_read(name, ends, NAN, &model) != STATUS_OK)
        fail_msg("%s", status_text());
    return model;
}

static void test_cifar10(void **state) {
    (void)state;
    static const struct {
        const char *name;
        enum op_kind kind;
        struct shape out;
    } expected[] = {{"conv1", OP_CONV, {24, 24, 64}},  {"conv1", OP_BIAS, {24, 24, 64}},
                    {"conv1", OP_RELU, {24, 24, 64}},  {"pool1", OP_MAX_POOL, {12, 12, 64}},
                    {"norm1", OP_LRN, {12, 12, 64}},   {"conv2", OP_CONV, {12, 12, 64}},
                    {"conv2", OP_BIAS, {12, 12, 64}},  {"conv2", OP_RELU, {12, 12, 64}},
                    {"norm2", OP_LRN, {12, 12, 64}},   {"pool2", OP_MAX_POOL, {6, 6, 64}},
                    {"local3", OP_DENSE, {1, 1, 384}}, {"local3", OP_BIAS, {1, 1, 384}},
                    {"local3", OP_RELU, {1, 1, 384}},  {"local4", OP_DENSE, {1, 1, 192}},
                    {"local4", OP_BIAS, {1, 1, 192}},  {"local4", OP_RELU, {1, 1, 192}},
                    {"softmax", OP_DENSE, {1, 1, 10}}, {"softmax", OP_BIAS, {1, 1, 10}}};
    struct model *m = read_builtin("cifar10", COLOUR);
    assert_int_equal(m->op_count, (int)(sizeof expected / sizeof *expected));
    struct shape at = {24, 24, 3};
    for (int i = 0; i < m->op_count; i++) {
        assert_int_equal(m->ops[i].kind, expected[i].kind);
        assert_memory_equal(&m->ops[i].in, &at, sizeof at);
        at = expected[i].out;
        assert_memory_equal(&m->ops[i].out, &at, sizeof at);
    }
    assert_int_equal(m->parameter_total, 1068298);
    const struct op_window conv = {5, 5, 1, 2, 2, 2, 2}, pool = {3, 3, 2, 0, 0, 1, 1};
    assert_memory_equal(&m->ops[0].window, &conv, sizeof conv);
    assert_memory_equal(&m->ops[5].window, &conv, sizeof conv);
    assert_memory_equal(&m->ops[3].window, &pool, sizeof pool);
    assert_memory_equal(&m->ops[9].window, &pool, sizeof pool);
    for (int i = 4; i <= 8; i += 4) {
        const struct op_lrn *lrn = &m->ops[i].lrn;
        assert_int_equal(lrn->radius, 4);
        assert_true(lrn->bias == 1 && lrn->alpha == 0.001 / 9 && lrn->beta == 0.75);
    }
    model_free(m);
    m = read_builtin("cifar10", (struct model_ends){28, 28, 1, 10});
    assert_int_equal(m->parameter_total, 1068298 - 2 * 25 * 64);
    model_free(m);
}

static void test_parameters(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int dims[4];
        double deviation, constant, decay;
    } expected[] = {
        {"conv1/weights", {5, 5, 3, 64}, 0.05, 0, -1},           {"conv1/biases", {64}, 0, 0, -1},
        {"conv2/weights", {5, 5, 64, 64}, 0.05, 0, -1},          {"conv2/biases", {64}, 0, 0.1, -1},
        {"local3/weights", {2304, 384}, 0.04, 0, 0.004},         {"local3/biases", {384}, 0, 0.1, -1},
        {"local4/weights", {384, 192}, 0.04, 0, 0.004},          {"local4/biases", {192}, 0, 0.1, -1},
        {"softmax_linear/weights", {192, 10}, 1.0 / 192, 0, -1}, {"softmax_linear/biases", {10}, 0, 0, -1}};
    struct model *m = read_builtin("cifar10", COLOUR);
    assert_int_equal(m->parameter_count, 10);
    size_t offset = 0;
    for (int i = 0; i < 10; i++) {
        const struct model_parameter *p = &m->parameters[i];
        assert_string_equal(p->name, expected[i].name);
        size_t count = 1;
        for (int k = 0; k < 4; k++) {
            assert_int_equal(p->dims[k], expected[i].dims[k]);
            count *= (size_t)(expected[i].dims[k] ? expected[i].dims[k] : 1);
        }
        assert_int_equal(p->count, count);
        assert_int_equal(p->count, op_parameter_size(&m->ops[p->op]));
        assert_int_equal(p->offset, offset);
        offset += (count + 15) / 16 * 16;
        assert_true(p->deviation == expected[i].deviation && p->constant == expected[i].constant);
        assert_int_equal(p->has_decay, expected[i].decay >= 0);
        assert_true(p->weight_decay == (expected[i].decay >= 0 ? expected[i].decay : 0));
        assert_int_equal(m->segments[i].offset, p->offset);
        assert_int_equal(m->segments[i].count, p->count);
        assert_true(m->segments[i].weight_decay == p->weight_decay);
        const struct model_layer *layer = &m->layers[p->layer];
        assert_int_equal(p->is_bias ? layer->biases : layer->weights, i);
        assert_true(p->op >= layer->first_op && p->op < layer->first_op + layer->op_count);
    }
    assert_int_equal(m->flat_count, offset);
    assert_true(m->defaults.lr == 0.1 && m->defaults.decay_epochs == 350 && m->defaults.ema == 0.9999);
    assert_true(isnan(m->defaults.momentum) && isnan(m->defaults.clip_norm));
    assert_int_equal(m->defaults.batch, 128);
    model_free(m);
}

static void test_2017_and_override(void **state) {
    (void)state;
    struct model *m = read_builtin("cifar10-2017", COLOUR), *plain = read_builtin("cifar10", COLOUR);
    static const double decay[] = {0, 0, 0.004, 0.004, 0};
    assert_int_equal(m->layer_count, plain->layer_count);
    assert_memory_equal(m->ops, plain->ops, (size_t)m->op_count * sizeof *m->ops);
    for (int i = 0, k = 0; i < m->layer_count; i++) {
        assert_string_equal(m->layers[i].name, plain->layers[i].name);
        if (m->layers[i].weights < 0)
            continue;
        assert_true(m->parameters[m->layers[i].weights].has_decay);
        assert_true(m->parameters[m->layers[i].weights].weight_decay == decay[k++]);
        assert_false(m->parameters[m->layers[i].biases].has_decay);
    }
    model_free(plain);
    model_free(m);
    assert_int_equal(model_read("cifar10-2017", COLOUR, 0.5, &m), STATUS_OK);
    assert_true(m->parameters[0].weight_decay == 0 && m->parameters[4].weight_decay == 0.5);
    assert_true(m->segments[4].weight_decay == 0.5 && m->segments[6].weight_decay == 0.5);
    model_free(m);
}

static void test_builtins(void **state) {
    (void)state;
    static const char *const names[] = {"cifar10", "cifar10-2017", "mlp", "softmax"};
    for (int i = 0; i < 4; i++) {
        bool found = false;
        for (int k = 0; model_builtin(k); k++)
            found = found || strcmp(model_builtin(k), names[i]) == 0;
        assert_true(found);
    }
    for (int k = 0; model_builtin(k); k++) {
        struct model *m = read_builtin(model_builtin(k), (struct model_ends){28, 28, 1, 26});
        assert_string_equal(m->name, model_builtin(k));
        assert_int_equal(m->ops[m->op_count - 1].out.c, 26);
        model_free(m);
    }
    struct model *m;
    assert_int_equal(model_read("cifer10", COLOUR, NAN, &m), STATUS_NOT_FOUND);
    assert_null(m);
    assert_non_null(strstr(status_text(), "did you mean cifar10?"));
    assert_int_equal(model_read("no/such.ini", COLOUR, NAN, &m), STATUS_NOT_FOUND);
    assert_non_null(strstr(status_text(), "no/such.ini"));
    assert_int_equal(model_read("/dev/zero", COLOUR, NAN, &m), STATUS_BAD_INPUT);
    assert_non_null(strstr(status_text(), "not a file"));
}

static void test_from_file(void **state) {
    (void)state;
    char path[512];
    snprintf(path, sizeof path, "%s/own net.ini", getenv("TEST_TMP"));
    static const char text[] =
        "\xEF\xBB\xBF[model]\r\nname = own ; mine\r\ninput=8\r\n\r\n[out]\r\ntype: dense\r\n"
        "units=classes\r\ndeviation=1e-2\r\n";
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
    struct model *m;
    assert_int_equal(model_read(path, COLOUR, NAN, &m), STATUS_OK);
    assert_string_equal(m->name, "own");
    assert_string_equal(m->source, text);
    assert_int_equal(m->layers[0].line, 5);
    assert_true(m->parameters[0].deviation == 0.01);
    assert_int_equal(m->parameter_total, 8 * 8 * 3 * 10 + 10);
    model_free(m);
}

#define HEAD       "[model]\nname=m\ninput=24\n"
#define TAIL       "[out]\ntype=dense\nunits=classes\ndeviation=0.1\n"
#define CONV(more) HEAD "[c]\ntype=conv\n" more TAIL

/* A bad text, and what its message must hold beside "m.ini:LINE:". */
static const struct fault {
    const char *text;
    int line;
    const char *says;
} faults[] = {
    /* the lines themselves */
    {"", 1, "expected [model]"},
    {"name=m\n" HEAD TAIL, 1, "before any section"},
    {"[net]\nname=m\n", 1, "expected [model]"},
    {HEAD, 1, "no layers"},
    {HEAD " momentum=0.9\n" TAIL, 4, "begins with a space"},
    {HEAD "\tmomentum=0.9\n" TAIL, 4, "begins with a space"},
    {HEAD "input=24\n" TAIL, 4, "given already, at line 3"},
    {HEAD TAIL TAIL, 8, "[out] is there already, at line 4"},
    {HEAD TAIL "[model]\n", 8, "[model] is there already, at line 1"},
    {HEAD "[out\ntype=dense\n", 4, "no ]"},
    {HEAD "[]\ntype=dense\n", 4, "has no name"},
    {HEAD "[a/b]\ntype=dense\n", 4, "can't name a section"},
    {HEAD "[out] type=dense\n", 4, "after the section's ]"},
    {HEAD "momentum\n" TAIL, 4, "expected [section] or key = value"},
    {HEAD "momentum\n" TAIL "[out]\n", 4, "expected [section] or key = value"},
    {HEAD "=3\n" TAIL, 4, "can't name a setting"},
    {HEAD "a b=3\n" TAIL, 4, "can't name a setting"},
    {HEAD "lr=\x01\n" TAIL, 4, "control character"},
    {"[model]\nname=m\xFF\ninput=24\n" TAIL, 2, "in UTF-8"}, /* a checkpoint would hold another name */
    {HEAD
     "# 3456789 123456789 123456789 123456789 123456789 123456789 123456789 123456789 123456789 123456789 "
     "123456789 123456789 123456789 123456789 123456789 123456789 123456789 123456789 123456789 "
     "123456789\n" TAIL,
     4, "at most 190"},
    /* unknown words, the nearest named */
    {HEAD "learning_rate=1\n" TAIL, 4, "\"learning_rate\""},
    {HEAD "decay_epoch=1\n" TAIL, 4, "did you mean decay_epochs?"},
    {HEAD "[p]\ntype=pol\n", 5, "did you mean pool?"},
    {CONV("kernel=5\nchannels=8\ndeviation=0.1\nchanels=3\n"), 9, "did you mean channels?"},
    {CONV("kernel=5\nchannels=8\ndeviation=0.1\nunits=3\n"), 9,
     "type conv has no setting \"units\"; there are type, "},
    {HEAD "[out]\nunits=3\n", 4, "[out] needs type"},
    /* missing and wrong values */
    {"[model]\ninput=24\n" TAIL, 1, "needs name"},
    {"[model]\nname=m\n" TAIL, 1, "needs input"},
    {"[model]\nname=\ninput=24\n" TAIL, 2, "name"},
    {"[model]\nname=a/b\ninput=24\n" TAIL, 2, "name"},
    {"[model]\nname=m\ninput=33\n" TAIL, 3, "only 32 x 32"},
    {"[model]\nname=m\ninput=0\n" TAIL, 3, "whole number from 1"},
    {"[model]\nname=m\ninput=24.0\n" TAIL, 3, "whole number from 1"},
    {"[model]\nname=m\ninput=99999999999999999999\n" TAIL, 3, "whole number from 1"},
    {HEAD "lr=0\n" TAIL, 4, "above 0"},
    {HEAD "lr=-0.1\n" TAIL, 4, "above 0"},
    {HEAD "lr=nan\n" TAIL, 4, "above 0"},
    {HEAD "lr=inf\n" TAIL, 4, "above 0"},
    {HEAD "lr=0x1\n" TAIL, 4, "above 0"},
    {HEAD "lr=0,1\n" TAIL, 4, "above 0"},
    {HEAD "lr=1/0\n" TAIL, 4, "above 0"},
    {HEAD "lr=1/2/3\n" TAIL, 4, "above 0"},
    {HEAD "lr=\n" TAIL, 4, "above 0"},
    {HEAD "momentum=1\n" TAIL, 4, "below 1"},
    {HEAD "ema=1\n" TAIL, 4, "below 1"},
    {HEAD "lr_decay=1.5\n" TAIL, 4, "at most 1"},
    {HEAD "batch=0\n" TAIL, 4, "whole number from 1"},
    {CONV("channels=8\ndeviation=0.1\n"), 4, "[c] needs kernel"},
    {CONV("kernel=5\ndeviation=0.1\n"), 4, "[c] needs channels"},
    {CONV("kernel=5\nchannels=8\n"), 4, "[c] needs deviation"},
    {CONV("kernel=0\nchannels=8\ndeviation=0.1\n"), 6, "kernel = 0"},
    {CONV("kernel=3\nchannels=8\ndeviation=0.1\nstride=0\n"), 9, "stride = 0"},
    {CONV("kernel=3\nchannels=8\ndeviation=0.1\nrelu=maybe\n"), 9, "yes or no"},
    {CONV("kernel=3\nchannels=8\ndeviation=0.1\nweight_decay=-1\n"), 9, "weight_decay = -1"},
    {HEAD "[n]\ntype=lrn\nradius=4\nalpha=1\n" TAIL, 4, "[n] needs bias"},
    {HEAD "[n]\ntype=lrn\nradius=-1\nbias=1\nalpha=1\nbeta=1\n" TAIL, 6, "radius = -1"},
    {HEAD "[n]\ntype=lrn\nradius=1000000\nbias=1\nalpha=1\nbeta=1\n" TAIL, 6,
     "radius = 1000000: expected a whole number from 0 to 63"},
    {HEAD "[n]\ntype=lrn\nradius=1\nbias=0\nalpha=1\nbeta=1\n" TAIL, 7, "bias = 0"},
    {HEAD "[out]\ntype=dense\nunits=many\ndeviation=1\n", 6, "units = many"},
    /* shapes */
    {HEAD "[p]\ntype=pool\nkernel=25\n" TAIL, 4, "larger than its input of 24 x 24"},
    {HEAD "[p]\ntype=pool\nkernel=12\nstride=12\n[q]\ntype=pool\nkernel=3\n" TAIL, 8,
     "larger than its input of 2 x 2"},
    {CONV("kernel=63\nchannels=8\ndeviation=0.1\n"), 4, "at most 47"},
    {CONV("kernel=3\nchannels=1048577\ndeviation=0.1\n"), 7, "channels = 1048577"},
    {CONV("kernel=1\nchannels=1048576\ndeviation=0.1\n"), 4, "24 x 24 x 1048576 values"},
    {HEAD "[p]\ntype=pool\nkernel=24\nstride=24\n[a]\ntype=dense\nunits=65536\ndeviation=1\n"
          "[b]\ntype=dense\nunits=65536\ndeviation=1\n" TAIL,
     12, "b/weights the model has more than 2147483647 parameters"},
    {HEAD "[out]\ntype=dense\nunits=11\ndeviation=1\n", 4, "1 x 1 x 11 values for 10 classes"},
    {HEAD "[p]\ntype=pool\nkernel=3\n", 4, "24 x 24 x 3 values for 10 classes"},
};

static void test_faults(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        const struct fault *f = &faults[i];
        struct model *m;
        char place[32];
        snprintf(place, sizeof place, "m.ini:%d: ", f->line);
        enum status status = model_parse("m.ini", f->text, COLOUR, NAN, &m);
        if (status != STATUS_BAD_INPUT || m || strncmp(status_text(), place, strlen(place)) != 0 ||
            !strstr(status_text(), f->says))
            fail_msg("fault %zu: got %s \"%s\", expected \"%s\" with \"%s\"", i, status_name(status),
                     status == STATUS_OK ? "" : status_text(), place, f->says);
    }
    struct model *m;
    assert_int_equal(model_parse("m.ini", HEAD TAIL, (struct model_ends){32, 32, 3, 1}, NAN, &m),
                     STATUS_BAD_INPUT);
    assert_int_equal(model_parse("m.ini", HEAD TAIL, (struct model_ends){32, 32, 0, 10}, NAN, &m),
                     STATUS_BAD_INPUT);
    assert_int_equal(model_parse("m.ini", HEAD TAIL, COLOUR, NAN, &m), STATUS_OK);
    model_free(m);
}

/* Lines longer than inih takes: the value of a setting is whole, anything else is refused. */
static void test_long_values(void **state) {
    (void)state;
    char text[1600], value[1400];
    memset(value, 'v', sizeof value);
    for (int length = 150; length <= 1000; length += 17) {
        snprintf(text, sizeof text, "data = /%.*s\nnext = 1\n", length, value);
        struct inifile ini;
        assert_int_equal(inifile_parse("c.ini", text, &ini), STATUS_OK);
        const struct inifile_pair *pair = inifile_find(ini.sections, "data");
        assert_non_null(pair);
        assert_int_equal(strlen(pair->value), length + 1);
        assert_int_equal(inifile_find(ini.sections, "next")->line, 2);
        assert_null(inifile_find(ini.sections, "dat"));
        inifile_free(&ini);
    }
    struct inifile ini;
    snprintf(text, sizeof text, "a = 1\ndata = %.*s\n", 1100, value);
    assert_int_equal(inifile_parse("c.ini", text, &ini), STATUS_BAD_INPUT);
    assert_non_null(strstr(status_text(), "c.ini:2: the line has 1107 bytes: at most 1023"));
}

static void test_numbers(void **state) {
    (void)state;
    (void)locale_with_comma(); /* where one can be made, its comma must not matter */
    double x = 7;
    assert_true(text_real("0.5", &x) && x == 0.5);
    assert_true(text_real("-1e-3", &x) && x == -1e-3);
    assert_true(text_quotient("0.001/9", &x) && x == 0.001 / 9);
    assert_true(text_quotient("3", &x) && x == 3);
    static const char *const bad[] = {"",     " 1",    "1 ", "1,5", "nan", "inf",
                                      "0x10", "1e999", "1e", "--1", "/2",  "1/"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(text_real(bad[i], &x));
        assert_false(text_quotient(bad[i], &x));
    }
    assert_true(x == 3);
    int64_t n = 5;
    assert_true(text_integer("-9223372036854775808", &n) && n == INT64_MIN);
    assert_false(text_integer("9223372036854775808", &n));
    assert_false(text_integer("1.0", &n));
    assert_false(text_integer("", &n));
    assert_true(n == INT64_MIN);
    setlocale(LC_ALL, "C");
}

static void test_nearest(void **state) {
    (void)state;
    static const char *const names[] = {"towers", "steps", "batch", "batch-per-tower", "lr", "lr-decay"};
    assert_string_equal(text_near("BATCH", names, 6), "batch");
    assert_string_equal(text_near("lr_decay", names, 6), "lr-decay");
    assert_null(text_near("tsep", names, 6));
    assert_null(text_near("x", names, 0));
    assert_string_equal(text_near("tower", names, 6), "towers");
    assert_string_equal(text_near("stpes", names, 6), "steps");
    assert_null(text_near("pause", names, 6));
    assert_null(text_near("", names, 6));
    char word[400];
    memset(word, 'z', sizeof word - 1);
    word[sizeof word - 1] = 0;
    assert_null(text_near(word, names, 6));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cifar10),   cmocka_unit_test(test_parameters),
        cmocka_unit_test(test_builtins),  cmocka_unit_test(test_2017_and_override),
        cmocka_unit_test(test_from_file), cmocka_unit_test(test_faults),
        cmocka_unit_test(test_numbers),   cmocka_unit_test(test_long_values),
        cmocka_unit_test(test_nearest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
