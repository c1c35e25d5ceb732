// SPDX-License-Identifier: Apache-2.0
// The functions of ext/draft/pieces.h, done by the library sentencepiece. It is C++ because the library has no C
// interface. It has no logic of its own: every function is one call, and exceptions and messages become a status.
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <unordered_map>
#include <vector>

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <seqlstm/ext/draft/pieces.h>

namespace sp = sentencepiece;

struct seqlstm_pieces {
    sp::SentencePieceProcessor processor;
};

namespace
{

class Lines : public sp::SentenceIterator
{
  public:
    explicit Lines(const seqlstm_pieces_training *training) : training_(training)
    {
        Next();
    }
    bool done() const override
    {
        return done_;
    }
    void Next() override
    {
        uint64_t bytes = 0;
        const char *text = training_->next(training_->context, &bytes);
        done_ = text == nullptr;
        line_.assign(text ? text : "", text ? bytes : 0);
    }
    const std::string &value() const override
    {
        return line_;
    }
    sp::util::Status status() const override
    {
        return sp::util::Status();
    }

  private:
    const seqlstm_pieces_training *training_;
    std::string line_;
    bool done_ = false;
};

template <class Call> int32_t guarded(seqlstm_error *err, const Call &call)
{
    try {
        const sp::util::Status status = call();
        if (status.ok())
            return SEQLSTM_OK;
        return seqlstm_error_set(err, SEQLSTM_CORRUPT_DATA, __FILE__, __LINE__, "sentencepiece: %s",
                                 status.ToString().c_str());
    } catch (const std::bad_alloc &) {
        return seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "sentencepiece: no memory");
    } catch (const std::exception &e) {
        return seqlstm_error_set(err, SEQLSTM_INTERNAL, __FILE__, __LINE__, "sentencepiece: %s", e.what());
    }
}

int32_t train(const seqlstm_pieces_training *training, void **out_model, uint64_t *out_bytes, seqlstm_error *err)
{
    std::string model;
    int32_t status = guarded(err, [&] {
        // Two threads always: unigram's sums depend on how many there are. Names of control pieces stay free for the
        // specials of the vocabulary. Level 3 logs only what is fatal: errors are returned as a status.
        const std::unordered_map<std::string, std::string> options = {
            {"minloglevel", "3"},
            {"num_threads", "2"},
            {"bos_id", "-1"},
            {"eos_id", "-1"},
            {"unk_id", "0"},
            {"max_sentence_length", "1048576"},
            {"model_type", training->method == SEQLSTM_PIECES_UNIGRAM ? "unigram" : "bpe"},
            {"vocab_size", std::to_string(training->size)}};
        Lines lines(training);
        return sp::SentencePieceTrainer::Train(options, &lines, &model);
    });
    if (status != SEQLSTM_OK)
        return status;
    *out_model = std::malloc(model.size() + 1);
    if (*out_model == nullptr)
        return seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "sentencepiece: no memory");
    std::memcpy(*out_model, model.data(), model.size());
    *out_bytes = model.size();
    return SEQLSTM_OK;
}

void release(void *model)
{
    std::free(model);
}

void close(seqlstm_pieces *pieces)
{
    delete pieces;
}

int32_t open(const void *model, uint64_t bytes, seqlstm_pieces **out, seqlstm_error *err)
{
    seqlstm_pieces *pieces = nullptr;
    int32_t status = guarded(err, [&] {
        pieces = new seqlstm_pieces;
        return pieces->processor.LoadFromSerializedProto({static_cast<const char *>(model), bytes});
    });
    if (status != SEQLSTM_OK) {
        close(pieces);
        return status;
    }
    *out = pieces;
    return SEQLSTM_OK;
}

int64_t count(const seqlstm_pieces *pieces)
{
    return pieces->processor.GetPieceSize();
}

const char *get(const seqlstm_pieces *pieces, int64_t id, uint64_t *out_bytes)
{
    const int number = static_cast<int>(id);
    const sp::SentencePieceProcessor &processor = pieces->processor;
    const std::string &text = processor.IdToPiece(number);
    const bool none = processor.IsUnknown(number) || processor.IsControl(number) || processor.IsUnused(number);
    *out_bytes = none ? 0 : text.size();
    return text.c_str();
}

int32_t cut(const seqlstm_pieces *pieces, const char *text, uint64_t bytes,
            void (*emit)(void *, const char *, uint64_t), void *context, seqlstm_error *err)
{
    return guarded(err, [&] {
        std::vector<std::string> out;
        const sp::util::Status status = pieces->processor.Encode({text, bytes}, &out);
        for (const std::string &piece : out)
            emit(context, piece.data(), piece.size());
        return status;
    });
}

} // namespace

extern "C" __attribute__((visibility("default"))) const seqlstm_pieces_module seqlstm_pieces_v0 = {
    sizeof(seqlstm_pieces_module), 0, train, release, open, close, count, get, cut};
