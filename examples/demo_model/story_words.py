# SPDX-License-Identifier: MIT
"""Word lists of the story generator: names, kinds, places, things, feelings."""

BOYS = """Tim Ben Sam Tom Max Leo Jack Finn Noah Omar Luca Hugo Otto Felix Oscar Theo Milo Ivan Nils Arun
Diego Pablo Kofi Yusuf Emil Anton Jonas Peter Paul Henry Oliver Adam Simon Toby Rory Liam Eric Karl Lars
Marco""".split()
GIRLS = """Lily Anna Mia Emma Sara Zoe Lucy Amy Nora Ella Ivy Rosa Maya Freya Ruby Clara Alma Ida Nina Tara
Leila Amina Suki Hana Ingrid Greta Molly Polly Daisy Alice Jane Kate Betty Sofia Elena Julia Wendy Sally
Martha Olga""".split()
PETS = """Pip Dot Momo Fluff Biscuit Pepper Nibbles Button Sunny Coco Bumble Patch Pebble Hazel Clover Bramble
Acorn Muffin Waffle Ginger Rusty Snowy Toffee Socks Whiskers Scruffy Maple Mango Olive Peanut Truffle Willow
Bean Berry Pickle Marble Poppy Cricket Domino Nutmeg""".split()
# Pieces for invented names, so that a name can be one never seen before.
NAME_A = "B D F G H J K L M N P R S T V Z Br Fl Kr Tr Ch Sh Th Wh".split()
NAME_V = "a e i o u oo ee ai".split()
NAME_B = "b d f g l m n p r s t v z ck ll mb nd nk rt st".split()
NAME_Z = "a o i y ie us in en el er o a".split()

# Animals that can be a hero, a friend or somebody in need.
ANIMALS = """fox rabbit bear mouse cat dog duck frog owl squirrel hedgehog turtle pig goat lamb pony kitten puppy
monkey elephant lion tiger penguin koala panda zebra giraffe badger beaver otter mole hamster chick goose deer
dragon bunny donkey camel seal whale dolphin parrot sparrow robin swan crab octopus snail ant bee ladybug
butterfly dinosaur unicorn raccoon""".split()
# Other heroes, with the pronoun where the word fixes it.
ROLES = [("princess", "she"), ("prince", "he"), ("king", "he"), ("queen", "she"), ("robot", ""), ("pirate", ""),
         ("knight", ""), ("wizard", "he"), ("witch", "she"), ("giant", ""), ("fairy", "she"), ("mermaid", "she"),
         ("farmer", ""), ("baker", ""), ("cowboy", "he"), ("snowman", "he"), ("ghost", ""), ("monster", ""),
         ("elf", ""),
         ("troll", ""), ("clown", ""), ("sailor", ""), ("painter", ""), ("child", ""), ("doctor", ""), ("gnome", "")]
SMALL = """bird kitten puppy mouse frog squirrel bunny duckling chick hedgehog turtle butterfly lamb ladybug bat owl
lizard beetle piglet mole""".split()
WISE = ["old owl", "old turtle", "wise old bear", "gray horse", "big elephant", "kind swan", "tall giraffe",
        "old goat", "gentle giant", "friendly farmer", "kind baker", "old sailor", "gardener", "mailman", "teacher",
        "kind nurse", "old woman", "old man", "policeman", "shopkeeper", "firefighter", "kind fairy", "painter",
        "friendly neighbor"]
FEMALE_ONLY = {"old woman", "kind fairy"}
MALE_ONLY = {"old man", "mailman", "policeman"}
FAMILY = [("mom", "she"), ("dad", "he"), ("grandma", "she"), ("grandpa", "he"), ("aunt", "she"), ("uncle", "he"),
          ("big sister", "she"), ("big brother", "he")]

TRAITS = """little small brave kind clever curious happy cheerful shy quiet funny gentle lively young polite busy
playful friendly sleepy lazy proud careful noisy tiny hungry""".split()
LOVES = ["to run and jump", "to sing", "to draw pictures", "to read books", "to dance", "to play in the mud",
         "to count the stars", "to climb trees", "to collect shells", "to help others", "to look at the clouds",
         "to tell jokes",
         "to eat cake", "to play outside", "to splash in puddles", "to build things", "to ask questions",
         "to play hide and seek", "to listen to stories", "to smell the flowers", "to chase butterflies",
         "to make new friends", "to play games", "to sleep late", "to swim", "to wear hats", "to watch the birds"]

# Places: (with preposition, bare noun phrase)
PLACES = [("in", "the forest"), ("in", "the park"), ("at", "the beach"), ("in", "the garden"), ("on", "the farm"),
          ("by", "the river"), ("at", "the lake"), ("in", "the meadow"), ("on", "the hill"), ("in", "the village"),
          ("at", "the playground"), ("by", "the pond"), ("in", "the woods"), ("in", "the field"),
          ("in", "the valley"),
          ("on", "the island"), ("at", "the market"), ("in", "the big city"), ("near", "the mountain"),
          ("in", "the jungle"), ("at", "the zoo"), ("in", "the old barn"), ("by", "the sea"), ("in", "the orchard"),
          ("near", "the castle"), ("on", "the bridge"), ("at", "the school"), ("in", "the snow"),
          ("near", "the cave"),
          ("by", "the waterfall"), ("in", "the yard"), ("in", "the town square")]
HOMES = ["small house", "cozy cottage", "red house", "little hut", "tall tower", "warm den", "big old house",
         "house with a blue door", "house near the sea", "hollow tree", "house on a hill", "tiny house",
         "house with a green roof", "small cabin", "wooden house"]
SPOTS = ["under the bed", "behind the door", "under a big tree", "behind a rock", "in a box", "in the tall grass",
         "under the table", "near the fence", "behind the sofa", "on the shelf", "in the basket", "under a bush",
         "beside the path",
         "on the roof", "in the mud", "under a pile of leaves", "in the bathtub", "inside an old boot",
         "on top of the wall", "in the kitchen", "between two stones", "on a branch"]

COLORS = "red blue green yellow pink purple orange white black brown golden silver gray".split()
TOYS = """ball, kite, doll, hat, scarf, drum, book, teddy bear, toy car, toy boat, balloon, crayon, whistle, bell,
bucket, blanket, umbrella, key, cup, ring, button, shell, toy train, puppet, box, flute, basket, lamp, mitten, coat,
boot, yo-yo, top, ribbon, feather, marble, necklace, toy truck, robot, lantern, bag, wagon, spoon, apron, toy plane,
stick, cap, pencil, rope, mirror""".replace("\n", " ").split(", ")
FOODS = ["apple", "cookie", "cake", "sandwich", "pear", "banana", "carrot", "muffin", "pie", "orange", "plum",
         "pancake",
         "piece of bread", "piece of cheese", "slice of pizza", "bowl of soup", "jar of honey", "peach", "egg", "nut",
         "bag of cherries", "basket of berries", "ice cream", "candy", "corn cob", "melon"]
DRINKS = ["warm milk", "hot tea", "cold water", "hot cocoa", "apple juice", "lemonade", "sweet tea", "orange juice"]
FLOWERS = ["rose", "sunflower", "daisy", "tulip", "bean plant", "pumpkin", "strawberry plant", "tomato plant",
           "apple tree", "carrot", "tall tree", "blue flower", "lemon tree", "big cabbage", "cherry tree"]

SKILLS = [("ride a bike", "riding a bike", "rode the bike"), ("swim", "swimming", "swam across the water"),
          ("fly a kite", "flying a kite", "flew the kite high"), ("whistle", "whistling", "whistled a tune"),
          ("skate", "skating", "skated all the way around"), ("tie a knot", "tying a knot", "tied a perfect knot"),
          ("read", "reading", "read the whole page"), ("cook soup", "cooking soup", "cooked a fine soup"),
          ("play the drum", "playing the drum", "played a happy song"), ("dance", "dancing", "danced without a fall"),
          ("catch a ball", "catching a ball", "caught the ball"), ("climb", "climbing", "climbed to the top"),
          ("paint", "painting", "painted a lovely picture"), ("sing", "singing", "sang like a bird"),
          ("jump rope", "jumping rope", "jumped ten times"), ("count to ten", "counting", "counted to ten"),
          ("write letters", "writing letters", "wrote a long letter"),
          ("bake bread", "baking bread", "baked good bread"),
          ("row a boat", "rowing", "rowed across the water"), ("juggle", "juggling", "juggled three apples"),
          ("play the flute", "playing the flute", "played the flute well"), ("ski", "skiing", "skied down the hill"),
          ("knit", "knitting", "knitted a warm scarf"), ("sew", "sewing", "sewed a fine coat")]
BUILDS = ["tower", "sandcastle", "treehouse", "boat", "snowman", "bridge", "fort", "birdhouse", "raft", "wagon",
          "swing",
          "doghouse", "tent", "big kite", "rocket", "little house", "fence", "stage", "toy castle", "tunnel"]
PARTS = ["wood", "sticks", "stones", "blocks", "rope", "sand", "leaves", "old boxes", "nails and boards", "mud",
         "shells",
         "cloth", "paper", "string", "branches", "bricks"]
GIFTS = ["card", "cake", "picture", "necklace", "scarf", "song", "crown of flowers", "paper boat", "clay cup", "poem",
         "basket of fruit", "painted stone", "warm hat", "pie", "little book", "wooden bird", "paper star"]
BREAKS = ["vase", "cup", "plate", "window", "lamp", "clock", "mirror", "bowl", "toy", "chair", "jar", "picture frame",
          "teapot", "flower pot", "glass", "flute"]
NOISES = [("a scratching sound", "a branch that rubbed on the window"),
          ("a loud thump", "an apple that fell on the roof"),
          ("a soft howl", "the wind in the chimney"),
          ("a strange squeak", "a little mouse who was looking for cheese"),
          ("a tap, tap, tap", "the rain on the glass"), ("a low growl", "a cat that was asleep and snoring"),
          ("a creak", "the old door that moved in the wind"), ("a rustle", "a hedgehog in the dry leaves"),
          ("a big crash", "a pot that fell from the shelf"), ("a long hoot", "a friendly owl on the roof"),
          ("a splash", "a frog that jumped into the pond"), ("a buzz", "a bee that could not find its way out"),
          ("a tiny cry", "a kitten that wanted to come in"), ("a strange song", "a bird that sang to the moon")]
TRAPS = [("stuck in the mud", "pulled it out with a long stick"),
         ("stuck up in a tree", "climbed up and carried it down"),
         ("caught in a net", "cut the net with care"), ("trapped under a branch", "lifted the branch with both arms"),
         ("stuck in a hole", "let down a rope and pulled it up"),
         ("tangled in some string", "untied the string slowly"),
         ("lost and cold", "wrapped it in a warm scarf"), ("stuck in a box", "opened the box very gently"),
         ("afraid of the deep water", "made a bridge from a log"),
         ("stuck between two rocks", "rolled one rock away"),
         ("hurt on one leg", "put a soft bandage on the leg"), ("trapped behind a fence", "made a hole in the fence"),
         ("too hungry to walk", "gave it something to eat"), ("too tired to move", "carried it all the way home")]
WEATHERS = [("sunny", "The sun was bright and warm"), ("rainy", "The rain fell on the roof"),
            ("windy", "The wind blew through the trees"), ("snowy", "Snow lay on the ground"),
            ("cold", "The air was cold and fresh"), ("hot", "The sun was very hot"),
            ("foggy", "The fog was thick and gray"), ("cloudy", "Gray clouds filled the sky"),
            ("warm", "The air was soft and sweet"), ("lovely", "The sky was blue"),
            ("quiet", "Nothing moved at all"), ("bright", "The birds sang in the trees")]
STORMS = [("rain", "It began to rain very hard"), ("storm", "The sky went dark and thunder boomed"),
          ("wind", "A strong wind began to blow"), ("snow", "Big white flakes of snow began to fall"),
          ("hail", "Little balls of ice fell from the sky"), ("fog", "A thick fog came down"),
          ("rain", "Drops of rain came down, first a few and then very many")]
OUTINGS = ["picnic", "walk", "swim", "trip", "game", "parade", "treasure hunt", "race", "party", "boat ride",
           "bike ride",
           "camping trip"]
INDOORS = ["told stories", "made a tent from blankets", "played cards", "baked cookies", "sang songs",
           "painted pictures",
           "played hide and seek",
           "put on a little play", "built a tower from blocks", "made paper boats", "read a book",
           "made funny hats"]
WISHES = [("to be very big", "was as tall as a tree and could not go into the house"),
          ("to fly", "flew so high that the houses looked like toys"),
          ("for a mountain of candy", "ate so much candy that @his belly hurt"),
          ("to be invisible", "called and called, but nobody could see @him"),
          ("that every day was a holiday", "found that all the shops and the school were closed"),
          ("for rain that tasted like lemonade", "was sticky from head to toe"),
          ("to be very small", "was no bigger than a pea and had to hide from a chicken"),
          ("that everything was gold", "could not eat, because the bread was gold too"),
          ("to talk with the moon", "talked all night and was too tired to play"),
          ("for a hundred toys", "had no room left to stand or to sleep"),
          ("to run faster than the wind", "ran so fast that nobody could play with @him"),
          ("for a house made of cake", "watched the birds eat the roof and the walls")]
DREAMS = ["a boat that sailed on the clouds", "a garden full of candy", "a friendly whale", "a train to the moon",
          "a dance with all the stars", "a castle made of snow", "a big soft bed in a tree", "a race with the wind",
          "a kind dragon", "a sea of warm milk", "a song without an end", "a hill of feathers"]
SAD = "sad upset worried afraid lonely unhappy cross nervous".split()
GLAD = "happy glad proud pleased excited cheerful thankful".split()
LESSONS = {
    "help": ["it is good to ask for help", "a friend can help when things are hard",
             "it is easier to do things together",
             "helping others makes everyone happy",
             "even a small friend can be a big help", "kind acts come back to you"],
    "try": ["you should never give up", "it takes time to learn new things", "everyone makes mistakes at first",
            "you get better when you try again", "hard work can be fun", "it is fine to fail and try once more"],
    "share": ["sharing is more fun than keeping", "things are better when you share them",
              "a toy is more fun with a friend",
              "friends are more important than things", "it is kind to take turns"],
    "truth": ["it is always best to tell the truth", "it takes courage to be honest", "a lie only makes things worse",
              "people forgive you when you are honest"],
    "brave": ["being brave means to go on when you are afraid", "many scary things are not scary at all",
              "it helps to look at what you fear", "the dark is not so bad with a friend"],
    "wait": ["good things take time", "if you wait, good things will come", "small steps lead to big things",
             "love and care make things grow"],
    "careful": ["it is wise to stay close to home", "you should look after your things", "it is good to listen",
                "it is wise to think before you act", "it is good to be careful"],
    "enough": ["you should be happy with what you have", "wishes are not always good", "the best things are simple",
               "being yourself is the best of all"],
    "friend": ["a new friend can be anywhere", "you should not judge others by how they look",
               "a smile can start a friendship",
               "it is good to be kind to someone new", "nobody is too different to be a friend"]}
