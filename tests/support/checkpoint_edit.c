#include "tests/support/checkpoint_edit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/cmocka.h"

void edit_open(struct checkpoint_edit *edit, const char *path) {
    *edit = (struct checkpoint_edit){0};
    if (safetensors_open(path, &edit->file) != STATUS_OK)
        fail_msg("%s", status_text());
    edit->tensor_count = edit->value_count = edit->file.tensor_count;
    edit->word_count = edit->file.word_count;
    assert_true(edit->tensor_count < EDIT_TENSORS && edit->word_count < EDIT_WORDS);
    memcpy(edit->words, edit->file.words, (size_t)edit->word_count * sizeof *edit->words);
    for (int i = 0; i < edit->tensor_count; i++) {
        edit->tensors[i] = edit->file.tensors[i];
        edit->values[i] = malloc(edit->tensors[i].bytes + 1);
        assert_non_null(edit->values[i]);
        assert_int_equal(safetensors_read(&edit->file, &edit->tensors[i], edit->values[i]), STATUS_OK);
        edit->tensors[i].data = edit->values[i];
    }
}

void edit_close(struct checkpoint_edit *edit) {
    for (int i = 0; i < edit->value_count; i++)
        free(edit->values[i]);
    safetensors_close(&edit->file);
}

struct safetensors_tensor *edit_tensor(struct checkpoint_edit *edit, const char *name) {
    for (int i = 0; i < edit->tensor_count; i++)
        if (strcmp(edit->tensors[i].name, name) == 0)
            return &edit->tensors[i];
    fail_msg("no tensor %s", name);
    return NULL;
}

void *edit_values(struct checkpoint_edit *edit, const char *name) {
    const struct safetensors_tensor *tensor = edit_tensor(edit, name);
    for (int i = 0; i < edit->value_count; i++)
        if (edit->values[i] == tensor->data)
            return edit->values[i];
    fail_msg("no values of %s", name);
    return NULL;
}

void edit_drop(struct checkpoint_edit *edit, const char *name) {
    *edit_tensor(edit, name) = edit->tensors[--edit->tensor_count];
}

void edit_rename(struct checkpoint_edit *edit, const char *name, const char *now) {
    edit_tensor(edit, name)->name = now;
}

void edit_add(struct checkpoint_edit *edit, struct safetensors_tensor tensor) {
    edit->tensors[edit->tensor_count++] = tensor;
}

void edit_word(struct checkpoint_edit *edit, const char *key, const char *value) {
    for (int i = 0; i < edit->word_count; i++)
        if (strcmp(edit->words[i].key, key) == 0) {
            if (value)
                edit->words[i].value = value;
            else
                edit->words[i] = edit->words[--edit->word_count];
            return;
        }
    fail_msg("no word %s", key);
}

void edit_write(const struct checkpoint_edit *edit, const char *path) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    assert_true(fd >= 0);
    if (safetensors_write(fd, path, edit->words, edit->word_count, edit->tensors, edit->tensor_count, NULL) !=
        STATUS_OK)
        fail_msg("%s", status_text());
    close(fd);
}
