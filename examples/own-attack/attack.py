"""Replaces the words that matter most by random words of the vocabulary, until the prediction changes."""

import ablate


def attack(item, predict):
    words = list(item.words)
    known = [word for word in ablate.vocabulary if not word.startswith("[")]

    # How much the model misses each word.
    without = [words[:n] + ["[UNK]"] + words[n + 1 :] for n in range(len(words))]
    left = [p[item.label] for p in predict(without)]
    most_important = sorted(range(len(words)), key=lambda n: left[n])

    for place in most_important[:2]:
        tried = [words[:place] + [word] + words[place + 1 :] for word in item.random.sample(known, 20)]
        answers = predict(tried)
        best = min(range(len(tried)), key=lambda n: answers[n][item.label])
        words = tried[best]
        if max(answers[best]) > answers[best][item.label]:
            return words
    return None


ablate.attack(attack)
